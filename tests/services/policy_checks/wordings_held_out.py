"""The bank held out: written after the last change of the reading of texts, which was not tuned on it."""

from tests.services.policy_checks.wording import PhraseBank

HELD_OUT = PhraseBank(
    thesis={
        "trend_pullback": (
            "{t0} in progress; the {t1} lets me in cheaply.",
            "A {t2} of ordinary depth within the {t0}.",
            "Resumption of the {t0} from the mean.",
        ),
        "channel_breakout": (
            "The {t0} is real and I follow it.",
            "A {t1} has cleared the deck.",
            "Leaving the range by the {t2}.",
        ),
        "mean_reversion": (
            "Rubber band: price is {t0} and will {t1}.",
            "An excursion {t2} that I expect to be reversed.",
            "{t0} after a one-sided week.",
        ),
        "momentum_continuation": (
            "The {t0} invites a follow-on trade.",
            "{t2} and {t1}.",
            "A burst with {t1}, to be joined early.",
        ),
        "squeeze_breakout": (
            "Out of the squeeze: {t1}.",
            "The {t0} after months of boredom.",
            "The long-awaited {t2}.",
        ),
    },
    because={
        "trend_pullback": (
            "Price came back to its average without damage, a {t1} by the book.",
            "As far as I can see the {t0} is unbroken and the {t2} nears its end.",
            "The {t1} has shaken out the impatient.",
            "I have waited for a {t2} to join the {t0}, and here it is.",
        ),
        "channel_breakout": (
            "Volume tripled on the {t0}.",
            "The market closed outside its {t2} for the first time this quarter.",
            "A {t1} like this attracts those who track the trend.",
            "The {t0} did not come out of nowhere: pressure had been building at the edge.",
        ),
        "mean_reversion": (
            "It closed {t2} for the fifth day and the tempo of the move is easing.",
            "The {decline} was driven by one headline, and now the market is {t0}.",
            "With price so far {t2}, the reward for patience is good: it should {t1}.",
            "Such {t0} readings are rare and short-lived.",
        ),
        "momentum_continuation": (
            "We had an {t0} that took out a week of trading in a day.",
            "The footprint shows {t1} through the whole session.",
            "I see {t2} where there was none last month.",
            "Nothing got in the way of the {t0}.",
        ),
        "squeeze_breakout": (
            "The {t0} with a wide bar and a firm close.",
            "A {t1} is under way after the quietest stretch of the year.",
            "Since the {t2}, price has not looked back.",
            "Options priced no movement at all; the {t2} caught them out.",
        ),
    },
    arguments=(
        "{buyers} come in earlier every time.",
        "The tide is running {up}.",
        "I lean {long}.",
        "The auction leaves a string of {higher} {lows}.",
        "{demand} is not satisfied yet.",
        "Whoever {sold} at the {low} is now in pain and must {buy}.",
        "The balance has tilted towards the {bulls}.",
        "{sellers} could not keep it {below} the average for more than an hour.",
        "The {bears} have lost three rounds in a row.",
        "The way {up} is free of obstacles.",
        "It has every reason to {rise}.",
        "My model is {bullish}, and so is the tape.",
        "Large orders are on the {bid}.",
        "{selling} pressure is fading fast.",
        "It is the {sellers} who have a problem.",
        "{higher} prices are the natural next step.",
    ),
    harmless=(
        "There is little to suggest a {decline}.",
        "{sellers} are few.",
        "I am not worried about {supply}.",
        "No one is {selling} in size.",
        "The {bears} talk a lot and do nothing.",
        "It hardly moved when {sellers} tried their luck.",
        "At no point did {sellers} threaten the level.",
        "This is no {bear} market.",
    ),
    counterfactual=(
        "If I see {sellers} in charge at the close, I cancel.",
        "A return of the {sellers} would end it.",
        "The mean must hold; if not, {sellers} have proven me wrong.",
        "Should the {low} go, so do I.",
        "Invalid on a {fall} {below} the level named above.",
        "It stops being a good idea as soon as {bears} regain the average.",
        "What must not happen is a {lower} {low}.",
        "Were {demand} to vanish, there would be nothing left of the argument.",
    ),
    hedges=(
        "I may well be wrong.",
        "It is one trade of many.",
        "The sample is modest, the edge likewise.",
        "Luck will play its part.",
        "Expect some heat first.",
        "Reasonable people may differ.",
    ),
    context=(
        "The session was shorter than usual.",
        "Implied volatility is unchanged.",
        "The order book is balanced.",
        "Fees are a rounding error here.",
        "It is a Tuesday, and nothing is scheduled.",
        "The stop is wider than the average range.",
    ),
)
