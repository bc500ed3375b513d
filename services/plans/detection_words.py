"""The words by which a text asks for high stakes: patterns with their weights, and what a clause is about.

Patterns and weights of requests are those of the design that this follows, with the words of trading. `_`
stands for whatever lies between two words. A subject (the risk cap, all symbols) is said of many things: it
counts where its sentence asks for a change. A deed (deploy, delete all) counts where it is not reported,
denied or asked about.
"""

import re
from dataclasses import dataclass
from typing import Literal

Category = Literal["high_stakes", "complex", "plan_request", "context"]
WEIGHTS: dict[Category, float] = {
    "high_stakes": 0.4,
    "complex": 0.3,
    "plan_request": 0.5,
    "context": 0.2,
}
GAP = r"(?:[\W_]+)"
ALL = r"(?:all|every|each|any|both|the_(?:whole|entire)|whole|entire|everything)"
OF_IT = (
    r"(?:_(?:of|the|our|my|its|these|those|your|open|old|stored|existing|current|other|enabled|live)){0,3}"
)
BOOKS = r"(?:play_?books?|strateg(?:y|ies)|setups?|books|systems)"


@dataclass(frozen=True)
class Pattern:
    """Words that stand for one thing.

    Attributes:
        name: as it is shown.
        deed: whether it is something done, else a subject that needs a change asked for.
    """

    name: str
    category: Category
    expression: re.Pattern[str]
    deed: bool


def words(expression: str) -> re.Pattern[str]:
    """An expression over whole words; `_` is any gap between two of them, `_?` no gap, too."""
    return re.compile(rf"(?<![a-z0-9])(?:{expression.replace('_', GAP)})(?![a-z0-9])")


def _of(category: Category, deed: bool, **expressions: str) -> tuple[Pattern, ...]:
    return tuple(
        Pattern(name.replace("_", " "), category, words(expression), deed)
        for name, expression in expressions.items()
    )


PATTERNS: tuple[Pattern, ...] = (
    *_of(
        "high_stakes",
        True,
        production_or_deploy=r"deploy(?:ing|ments?)?|roll_?out|rolling_out|ship_(?:it|them|this|that)"
        r"|(?:in|into|to|on|onto|for|hits?)_(?:the_)?prod(?:uction)?|production|critical",
        refactor_or_rewrite=r"refactor(?:ing)?|re_?write|re_?writing|re_?work(?:ing)?|re_?do(?:ing)?|overhaul(?:ing)?"
        r"|re_?design(?:ing)?|re_?build(?:ing)?|(?:build|make|writ|creat)(?:e|ing)?_new_ones?"
        r"|from_the_ground_up|start(?:ing)?_(?:over|from_scratch|again_from_zero)",
        migrate=r"migrat(?:e|ing|ion)|cut(?:ting)?_over|port(?:ing)?_(?:everything|it|them|all|the)"
        rf"|mov(?:e|ing)_(?:everything|{ALL}{OF_IT}_[a-z]+|it|them|us|over)(?:_over)?_to",
        delete_or_remove_all=r"(?:delet|remov|eras|purg|wip|nuk|scrap|flush|clear|dropp?|kill|trash|destroy|ditch|dump|throw|toss|rip|axe)"
        rf"(?:e|ing)?(?:_(?:out|away|down|off|up))?_{ALL}|drop(?:ping)?_(?:the_)?(?:tables?|database|schema)"
        r"|(?:delet|remov|eras|wip|scrapp?|purg|drop|ditch|trash)(?:e|ing)?_(?:(?:the|my|our|your|these|those)_)?"
        r"(?:(?:current|old|existing|stored|present)_)?(?:tables?|database|store|journal|runs?|play_?books|folder|history|(?:shadow_)?(?:experiments|trials|candidates))"
        r"|get(?:ting)?_rid_of",
        live_mode=r"(?:go|going|gone|switch|flip|put|turn|take|push|start|run|trade|trading|make|be|set|send|bring)"
        r"(?:ing|ting|ping)?(?:_(?:it|them|this|that|us|everything|all|every|each|over|back|the|[a-z]{3,24}|to|in|on)){0,5}?"
        r"_live(?!_(?:prices?|charts?|feeds?|quotes?|data|blog|figures|numbers))"
        r"|live_(?:mode|trading|account|orders?|run)|real_(?:money|cash|account|orders)|off_paper",
    ),
    *_of(
        "high_stakes",
        False,
        risk_cap=r"risk_(?:caps?|limits?|ceilings?|per_trade|fractions?|budgets?|envelope|bounds?|settings?)"
        r"|(?:caps?|limits?|ceilings?)_(?:on|of|for)(?:_the)?_(?:risk|exposure|losses|drawdown|leverage|size)"
        r"|(?:daily|weekly|max|maximum|drawdown|exposure|position|loss|size|gross|net)(?:_(?:loss|size))?_(?:limits?|caps?)"
        r"|(?:max|maximum)_(?:drawdown|loss|exposure|daily_loss)|max_?drawdown|kill_?switch|circuit_breaker|leverage"
        r"|(?:position|bet|trade)_siz(?:e|es|ing)|exposure|envelope|more_risk|less_risk|higher_risk|(?:the|our|its|their)_risk|risk_to"
        r"|(?:no|no_more|without|uncap|remove|lift)(?:_(?:the|any))?_(?:caps?|limits?)|stop_?loss(?:es)?",
        playbook_definition=rf"{BOOKS}(?:_s)?_(?:definitions?|rules?|files?)|definitions?|re_?defin(?:e|ing)"
        r"|(?:entry|exit|stop|trail(?:ing)?|target|setup|activation|invalidation|trading)_(?:rules?|logic|conditions?|expressions?)"
        rf"|rules?_(?:of|for|in)(?:_(?:the|all|our|my))*_(?:{BOOKS}|[a-z]+_[a-z]+)|new_rules|parameters?|thresholds?|invalidations?|(?:all|my|our|every)(?:_(?:my|our|the))?_(?:stops|targets)"
        r"|(?:entry|entries|exits?)_(?:of|for|in|on)",
        eligibility=r"(?:in_?)?eligib(?:le|ility)|un_?ban(?:ning)?|re_?enabl(?:e|ing)|(?:lift(?:ing)?|end(?:ing)?|drop(?:ping)?)"
        r"(?:_(?:the|this|that|all|every|its))*_bans?|bans?|banning|allow(?:ing)?_(?:shorts?|longs?|shorting)|allow(?:ing)?_(?:it|them|[a-z]+_[a-z]+)_(?:to_trade_)?(?:again|back|in|into|on)"
        r"|white_?list(?:ing)?|black_?list(?:ing)?|regime_(?:cells?|filters?)"
        r"|(?:trad|play|run|work|us)(?:e|ing)?(?:_in)?_(?:all|every|any|each)_regimes?",
    ),
    *_of(
        "complex",
        False,
        large_change=r"(?:multiple|many|several|all)_files|(?:large|big|huge|major|sweeping)_changes?|(?:entire|whole)"
        r"_(?:code_?base|system|book|portfolio|account|desk|setup|config(?:uration)?|lot|thing)|everything|across_the_board|all_accounts"
        r"|every_account|from_scratch|start(?:ing)?_over|at_once",
        all_symbols=rf"{ALL}{OF_IT}_(?:symbols?|tickers?|markets?|instruments?|names|stocks?|pairs?|assets?|contracts?|coins?)"
        r"|(?:whole|entire)_(?:universe|watch_?list)|universe",
        several_playbooks=rf"(?:several|multiple|many|two|three|four|five|six|both|all|every|each){OF_IT}"
        rf"(?:_(?:two|three|four|five|six))?_{BOOKS}",
    ),
    *_of(
        "plan_request",
        True,
        show_me_a_plan=r"(?:show|give|send|write|make|draw|draft|propose|prepare|need|want|see|get|with|present|outline)"
        r"(?:_(?:me|us|up|out|to_see))?_(?:a|the|your|some)(?:_[a-z]+){0,2}_plan|plan_(?:first|before|it_out)|what_is_(?:the|your)_plan"
        r"|what_s_(?:the|your)_plan",
        step_by_step_plan=r"step_by_step(?:_plan)?|steps?_first|one_step_at_a_time|walk_(?:me|us)_through",
        what_would_you_do=r"(?:what|how)_would_you_(?:do|change|go_about|handle|approach|proceed)|what_you_(?:would|will|are_going_to|intend_to|want_to)"
        r"_(?:do|change)|what_(?:are|do)_you_(?:going|plan|intend|planning)_to_do",
        explain_your_approach=r"(?:explain|describe|tell_(?:me|us)|show_(?:me|us)|lay_out|outline)_(?:your|the)_(?:approach|strategy|steps|idea|thinking)",
        before_you_start=r"before_you_(?:start|begin|do|touch|change|act|execute|run|go|apply|commit|pull)|before_(?:doing|touching|changing|applying)"
        r"_(?:anything|it|that)|ask_(?:me|us)_(?:first|before)|(?:let_me|for_me_to)_(?:review|approve|see|sign_off)|for_my_approval",
    ),
)
LAST_PLAN = "last plan stale, failed or expired"  # of the category `context`

# Changes that a subject may be asked to undergo, as they are asked for.
CHANGE = words(
    r"adapt|add|adjust(?:ing)?|allow|alter|apply|back|ban|bump|bring|broaden|chang(?:e|ing)|cut|deactivate|decrease|deploy|disable|disarm"
    r"|delete|ditch|double|drop|dump|ease|edit|enable|end|expand|extend|flip|force|get_rid_of|give|go|halve|hike|increas(?:e|ing)|ignore|introduce"
    r"|kill|lift(?:ing)?|loosen(?:ing)?|lower|make|max_out|merge|migrate|modify|move|need|open|override|overwrite|overhaul|port|pull|push|put|quadruple"
    r"|rais(?:e|ing)|re_?define|re_?enable|re_?do|erase|let|purge|crank|refactor|relax|release|remove|replace|reset|restore|revert|re_?write|re_?work|roll|rais|reinstate"
    r"|scale|scrap|set|shift|ship|shut|slash|start|stop|suspend|swap|switch|take|throw|tighten|triple|turn|tweak|un_?ban|undo|unlock"
    r"|up|update|upgrade|use|wants?|white_?list|widen|wipe|write|let_?s|must|should|bypass|raised|lowered|lifted|doubled|removed|changed_to"
    r"|no_longer|new|from_now_on|to_\d[\d.,]*|more|bigger|higher|size"
)
# A reader's errand: what is read changes nothing.
READING = words(
    r"(?:please_|pls_|now_|then_|also_|just_|first_|and_|ok_|hi_|hey_|so_|again_|(?:can|could|would|will)_(?:you|we|i)_(?:please_)?)*"
    r"(?:(?:show|list|print|display|describe|explain|report|compare|summari[sz]e|count|plot|chart|graph|look|read|check|find|search|remind"
    r"|tell|quote|translate|define|recap|remember|note|send_me_the|give_(?:me|us)_(?:a_|the_)?(?:list|summary|overview|table|figures?|numbers?|status|state)"
    r"|give_(?:me|us)_(?:the|a|all)_(?:[a-z0-9]+_){0,3}(?:trades?|positions?|losers?|winners?|orders?|fills?|names?|reasons?|counts?))"
    r"|(?:what|whats|which|why|when|where|who|whose|whom|how)(?:_s)?"
    r"|(?:did|does|is|are|was|were|has|had|am)|do_(?:we|you|they|i|any|our|these|those|the)|have_(?:we|you|they|i|there|any)"
    r"|(?:any|no)_(?:idea|news|word|clue)|i_(?:wonder|am_curious|was_wondering|m_wondering|m_curious))"
)
# Openings that look like a question and ask for something to be done.
STILL_ASKS = words(
    r"why_(?:not|don_?t_(?:you|we))|how_about|what_about|what_i_(?:want|need)|what_we_(?:want|need)|is_it_(?:ok|okay|fine|time)"
    r"|are_you_(?:able|ready)|when_(?:the|it|this|that|you|we|[a-z]+_(?:opens|closes|ends))(?!_(?:did|do|does))|tell_(?:the|it|them)_[a-z]*_?to"
    r"|show_(?:them|the_market)|check_(?:it|this|that)_in|where_(?:possible|it)|whatever|which_means|who_cares|whichever|look_no"
)
NEGATION = words(
    r"do_not|don_?t|does_not|doesn_?t|did_not|didn_?t|never|not|cannot|can_?t|won_?t|wouldn_?t|shouldn_?t|mustn_?t|isn_?t|aren_?t|wasn_?t"
    r"|without|nobody|nothing|nor|neither|avoid(?:ing)?|instead_of|rather_than|refrain_from|against|no_(?:need|reason|intention|wish|rush|plans?|point|one)"
    r"|no(?=_[a-z]+(?:_(?:today|now|yet|this|planned|please))?[^a-z]*$)|far_from|(?:too_early|wrong|mistake|bad_idea|madness|reckless|foolish|reluctant|afraid|hesitant)_to|leave|hands_off|stay_away|keep_your_hands"
)
# Negations that deny nothing of what follows.
NOT_DENIED = words(
    r"(?:do_not|don_?t|never|not)_(?:forget|hesitate|wait|fail|just|only|bother|worry|ask|delay|mind|be_afraid|be_shy|stop|let_up|hold_back|waste|argue)"
    r"|not_(?:only|just|merely)|no_(?:doubt|matter|questions|longer)|why_(?:not|don_?t_(?:you|we))|nothing_(?:else|less|but)"
    r"|without_(?:asking|waiting|delay|further|fail|me|hesitat\w+|question\w*|any_(?:questions|delay|caps?|limits?))|against_(?:my|all|the_odds)"
    r"|leave_(?:nothing|it_to|no)|not_(?:want|like)_to_wait|can_?t_wait|cannot_wait|nothing_left"
)
REPORTED = words(
    r"says?|said|saying|writes?|wrote|written|calls?|called|titled|reads|headline|subject_line|phrases?|sentences?|words?|terms?|means?|meant"
    r"|quot(?:e|es|ed|ing)|mentions?|mentioned|labell?ed|named|chapter|section|page|button|menu|comment|e_?mail|message|error|log"
)
CARRIED_OUT = words(
    r"do(?:_(?:what|as|it|this|so|exactly|that))|execute|follow|carry_out|obey|perform|apply|run|act_on|go_ahead|proceed|just_do"
)
# Production of goods, and levels that traders call critical.
OF_THE_MARKET = words(
    r"(?:oil|crude|gas|industrial|opec|gold|copper|corn|wheat|factory|car|auto|steel|chip|shale|us|euro|manufacturing|energy|coal|sugar|coffee)"
    r"(?:_[a-z]+)?_production|production_(?:cuts?|data|figures?|numbers?|quotas?|index|costs?|growth|forecast|targets?|line|report|rose|fell|missed|beat)"
    r"|critical_(?:support|resistance|levels?|zones?|prices?|areas?|mass|metals?|minerals?|of|day|week|moment)"
    r"|deploy(?:ing)?_(?:more_|some_|fresh_)?(?:capital|cash|rigs|troops|more_rigs|funds)"
    r"|(?:fed|ecb|bank|sec|congress|producers|countries|companies|government|regulator|exchange|broker|traders|funds|they|people)"
    r"(?:_[a-z]+)?_(?:(?:will|would|may|might|could|to|is|are|be|has|have|been)_){0,3}"
    r"(?:deploy|re_?writ|re_?design|overhaul|migrat|re_?build|refactor)(?:e|ing)?"
)
