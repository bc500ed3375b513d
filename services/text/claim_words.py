"""The words by which `claims` tells what a writer says is so from what is supposed, granted or asked: data.

Single words are separated by blanks; all lower case. No word here has a direction.
"""

import re


def words(text: str) -> frozenset[str]:
    """The words of a list that is written as a text."""
    return frozenset(text.split())


# From the first word of a sentence on, these make all of it a case that is only supposed.
SUPPOSING = words("if unless should were had suppose assuming provided once whenever until otherwise")
# Elsewhere in a sentence they do so from there on.
CONDITIONAL = words("if unless until otherwise invalidated invalidates invalidation invalid exit exits")
# A sentence that says what would end the plan, when it also supposes something.
ENDS_THE_PLAN = re.compile(
    r"\b(?:wrong|mistaken|invalid\w*|disprov\w+|prov\w+|change my (?:mind|view|opinion)|rethink|reconsider"
    r"|(?:am|are|be|is) (?:out|off|void|dead|done|gone|finished|closed|over)|no longer (?:valid|hold)"
    r"|(?:idea|thesis|plan|trade|case|setup) (?:dies|ends|fails|falls|no longer)|abandon|kills?)\b"
)
SUPPOSES = re.compile(
    r"\b(?:would|should|if|were|unless|only|until|once|when|whenever|moment|as soon as|in (?:the )?case"
    r"|in the event|takes|needs|requires|what|dies|ends|upon|(?:on|with|at|after) (?:a|an|any))\b"
)
# Words of the plan's own risk: what stands against the plan beside them is what may happen to it.
OWN_RISK = words("stop loss losses damage invalidation misread misjudged premise thesis")
# A sentence about what may go wrong.
RISK_NAMED = re.compile(
    r"^\W*(?:some|sceptics|skeptics|critics|others|people|many|most|commentators)\b"
    r"|^\W*(?:(?:the|my|its|one|another|key|main|biggest|principal|chief|only|obvious|real) )*"
    r"(?:risks?|danger|worry|concern|threat|caveat|failure|scenario)\b"
)
CONCESSIVE = words("despite although though notwithstanding albeit while granted admittedly whereas")
BACKGROUND = words("after following before since")
TURNS = words("but yet however nevertheless nonetheless still")
# A clause ends at these.
JOINTS = TURNS | BACKGROUND | words("and nor or so because as which who that's while whereas then when where")
# "That" behind these begins what is thought or said; behind another word it tells more of the word.
THAT_IS_SAID = words(
    "think thinks believe believes suggest suggests say says show shows mean means evidence sign signs fear"
    " hope see sees expect expects feel feels sure clear idea view claim claims fact so imply implies"
    " indicate indicates confirm confirms know certain unlikely likely doubt case reason not is was certainly"
    " assume"
)
# A sentence that says the opposite of its words.
IRONY = re.compile(r"\basif\b|\b(?:good luck|so much for|yeah right|dream on|keep dreaming|in your dreams)\b")
PRONOUNS = words("i we it they this that he she")
HEDGES = words("may might could perhaps maybe possibly seemingly")
DENIALS = words("no not hardly never nowhere nope wrong barely scarcely nothing")
# Said in more than one word, read as one of the words above, or as nothing.
REWRITES = tuple(
    (re.compile(pattern), put)
    for pattern, put in (
        (r"’", "'"),
        (r"\d+(?:[.,]\d+)*%?", " 0 "),
        (r"\b(?:e\.g\.|i\.e\.|vs\.)", " "),
        (r"\bcannot\b", "can not"),
        (r"n't\b", " not"),
        (r"\bas (?:if|though)\b", "asif"),
        (r"\beven (?:if|though)\b", "although"),
        (r"\bin spite of\b", "despite"),
        (r"\b(?:in (?:the )?case of|in the event of|in case|the moment|as soon as|only if)\b", "if"),
        (r"\s[-–—]+\s|[–—]", " , "),
        (r"-", " "),
    )
)
