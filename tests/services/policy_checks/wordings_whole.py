"""Whole rationales, each written for one playbook and direction from the playbook's description.

Nothing is drawn or mirrored: a text stands as a strategist would send it. `RIGHT` argues for the plan,
`AGAINST` argues for the other side or for no trade, `DENIED` takes back what the playbook waits for. Written
before the reading of texts was changed for sentences of bare terms and for what was, and read once, then.
"""

from collections.abc import Mapping

from schemas.vocabulary import Direction

Texts = Mapping[tuple[str, Direction], tuple[str, ...]]


RIGHT: Texts = {
    ("trend_pullback", "long"): (
        "The uptrend of the last two months is orderly. Today's dip tagged the 20-bar mean and closed "
        "back over it, which is where this playbook likes to get involved. I take half the usual "
        "conviction because volume was light.",
        "Three prior visits to the average were met by fresh money, and this pullback looks no different."
        " Structure is a staircase: each correction stops above the one before.",
        "We are buying a dip in a strong tape. The retreat was slow and overlapping, the advance before "
        "it was fast and clean, and that is the footprint of profit taking rather than of distribution. "
        "If the low of the setup bar goes, the idea is dead.",
        "Trend strength is well positive and price only leaned on the mean. The pullback cost less than "
        "one ATR. I would expect the next leg to start from here, with the prior swing as the first "
        "objective.",
        "After an eight-bar run the market paused, drifted back to its mean and found bids. The uptrend "
        "has not been damaged. Waiting for a close over the setup bar keeps me out if the pause turns "
        "into something worse.",
    ),
    ("trend_pullback", "short"): (
        "The downtrend is mature but nothing suggests it has finished. A relief rally has carried price "
        "into the 20-bar mean from underneath, where the last two bounces ran out of road.",
        "Every recovery since the spring has stalled near the average. This throwback is the fourth, it "
        "came on thin volume, and I want to be short when it rolls over.",
        "Lower highs all the way down the chart. The relief rally is short covering, not new demand, and "
        "a close under the setup bar says it is done.",
        "Price retraced about a third of the last leg down and met offers at the mean. I treat this as a "
        "throwback within a downtrend and look for a retest of the lows. A close well above the mean "
        "would tell me I am wrong.",
        "The moving averages fan out to the downside and the bounce has been feeble. I sell the throwback"
        " with a stop beyond the mean; there is room down to the August trough.",
    ),
    ("channel_breakout", "long"): (
        "Price has been knocking on the upper channel for six sessions and today it closed through it. No"
        " supply showed up at the old ceiling.",
        "A new high in twenty bars, made on a close and not just on a spike. Breakouts in this regime "
        "tend to travel, and the mean is close enough underneath to keep the stop tight.",
        "The base under resistance is tight and the upside breakout came with double the usual turnover. "
        "I follow it. Should it slip back into the range, the trade is simply wrong and small.",
        "We have an upside breakout from a long shelf. Those who were waiting for it cheaper are left "
        "behind and will have to pay up.",
        "The market sits within a quarter ATR of its upper channel after a string of higher closes. I "
        "want the order in place for the moment it gets through, since the first bar out usually carries "
        "the most.",
    ),
    ("channel_breakout", "short"): (
        "The floor at the lower channel has been tested four times and it gave way on the close. Stops "
        "under it should feed the move.",
        "A new low for the month with nobody stepping in front of it. I go with the break; the mean "
        "overhead is where I would admit the mistake.",
        "This is a downside breakout out of a narrowing range. Each rebound inside the range was weaker "
        "than the one before, so the break did not come as a surprise.",
        "Price is pinned to its lower channel and closes at the worst level of the day. Holders who "
        "bought the range are under water and will want out.",
        "A downside breakout on a wide bar. The risk is a quick reclaim of the range, which the "
        "invalidation covers; otherwise I expect the decline to run for a couple of weeks.",
    ),
    ("mean_reversion", "long"): (
        "Two and a half standard deviations under the average without any news is too much. The market is"
        " oversold and the last bar already refused to close on its low.",
        "The slide has been vertical and emotional. From such readings price tends to snap back up within"
        " a few bars, and I do not need more than that.",
        "It trades far below its mean while the larger trend is flat, so there is nothing to justify the "
        "discount. I expect a drift back to the middle of the range. A further low would prove me early.",
        "Sellers have thrown everything at it for five days and the range of the bars is shrinking. "
        "Oversold, with a first close over the prior bar's high needed to get me in.",
        "A liquidation flush: volume spiked, price overshot, and the reaction is due. I look for it to "
        "snap back up to the 20-bar average and take half off on the way.",
    ),
    ("mean_reversion", "short"): (
        "Price ran away from its average on a rumour that was denied an hour later. It is overbought by "
        "any measure, and late buyers have no one left to sell to.",
        "Nearly three standard deviations above its mean in a market that has gone nowhere all year. "
        "These excursions usually give back most of the gain within a week.",
        "The spike looks exhausted: four up bars, each smaller than the last. I expect it to snap back "
        "down as soon as the first holder takes profit.",
        "Overbought into the top of the range. The move up was one-way and left a vacuum below it. If it "
        "makes another high I was too soon and the stop takes care of that.",
        "A stretched market with euphoric sentiment, far above its mean. I fade it for a return to the "
        "average, no more; the larger trend is sideways.",
    ),
    ("momentum_continuation", "long"): (
        "An upward thrust through three days of congestion, closing on its high. Whoever drove it was not"
        " price sensitive, and such flows rarely end in one bar.",
        "Buyers in control from the open to the close, the widest range in a month, and no pullback to "
        "speak of. I join on strength above the bar's extreme.",
        "The trend was already up and today it accelerated. Bullish momentum of this kind tends to carry "
        "for several bars; the 10-bar mean is my line in the sand.",
        "A wide bar, a close in the top tenth, and follow-through in early trade. That is an upward "
        "thrust with initiative behind it and I would rather pay up than miss it.",
        "Dips are being bought within minutes and the average is steep. With bullish momentum like that I"
        " do not argue about valuation. When the thrust is given back, I am out.",
    ),
    ("momentum_continuation", "short"): (
        "A downward thrust that closed at its low after taking out two weeks of gains. The bid simply "
        "stepped away.",
        "Sellers in control all session, and the close was the worst print. The next close beneath it "
        "should bring in those who hoped for a bounce.",
        "Bearish momentum is building on rising volume. Rallies last minutes. I join the move under the "
        "bar and give it twelve bars to work.",
        "The trend points down and today's bar is one and a half times the normal range with hardly a "
        "tail. A downward thrust of this quality is usually followed by another.",
        "Heavy, one-sided trade with sellers in control. The only thing that would stop me is a quick "
        "recovery of the 10-bar mean, and there is no sign of one.",
    ),
    ("squeeze_breakout", "long"): (
        "Bandwidth is in its lowest decile and price leans on the top of the range. If the squeeze "
        "resolves up, the move should be several times the risk.",
        "Weeks of quiet have stored up energy, and the market sits in the upper half of the box. I wait "
        "for a break above the range and let a stop order do the entry.",
        "The coil is tight and the bias inside it is to the upside: higher lows since the tenth. A "
        "release upward would catch most people without a position.",
        "Nothing has moved for a month. Today's close is the first one outside, a break above the range "
        "with expanding volume. I am in on a trade over the high.",
        "The squeeze resolves up with a firm close. Volatility is cheap at the start of a move like this,"
        " the stop can be close, and the reward is open-ended. Back under the average it was a false "
        "start.",
    ),
    ("squeeze_breakout", "short"): (
        "The narrowest range of the year, with price stuck in its lower half. When the squeeze resolves "
        "down there is little support until the spring lows.",
        "A break below the range after a dull month. Those who sold volatility have to hedge into the "
        "move, and that adds fuel to the fall.",
        "Contraction precedes expansion, and the slope of the mean inside the box is negative. I look for"
        " a release downward and only enter once price trades through the bar's low.",
        "The squeeze resolves down on the close. Attempts to leave the box at the top were turned back "
        "twice this week, so the path of least resistance is lower.",
        "Price left its box at the bottom. This release downward follows the calmest stretch since winter"
        " and I expect it to persist for ten to fifteen bars. A return over the average would cancel it.",
    ),
}

AGAINST: Texts = {
    ("trend_pullback", "long"): (
        "The averages have crossed to the downside and every bounce is met with offers. I see further "
        "losses ahead.",
        "This is how tops form. The smart money is heading for the exit and I would not be caught holding"
        " it.",
        "Price knifed through the mean and kept going; what began as a dip is a rout now.",
        "Bids are pulled as soon as price approaches them. It wants to go lower.",
        "Last month this was a strong market. Today the highs are falling and the lows are falling with "
        "them.",
        "I would be a seller of any bounce from here.",
    ),
    ("trend_pullback", "short"): (
        "The bottom is in. Higher lows for three weeks, and each wave of selling is smaller than the last.",
        "Shorts are being squeezed and there is no one left to lean on it. I expect new highs by the end "
        "of the month.",
        "What was dismissed as a relief rally has recovered the whole decline and keeps climbing.",
        "Funds are accumulating quietly. I would want to own this, not sell it.",
        "The bears had their chance and could not push it under the mean. It goes up from here.",
        "Offers get lifted the moment they appear.",
    ),
    ("channel_breakout", "long"): (
        "The poke above the old high was sold at once and the bar closed back inside. A classic bull trap.",
        "Volume dried up on the way to the edge and sellers defend it with size. I look for a trip back "
        "to the other end of the range.",
        "Every one of the last five breakouts failed here, and this one already smells the same.",
        "Price hit the ceiling and fell straight through the middle of the range.",
        "The market is heavy. Anyone who bought up here is going to regret it.",
        "I would rather lean against this level from the short side.",
    ),
    ("channel_breakout", "short"): (
        "The flush under the floor was bought aggressively and the bar closed on its high. That is a "
        "spring, and it points up.",
        "Below the range there was no follow-through at all; buyers soaked up everything and took it back.",
        "Support held for the fifth time. The next stop is the top of the range.",
        "The breakdown was a shakeout. Weak holders are gone and the way up is clear.",
        "I would look to get long against this low.",
        "Selling down here has been a losing trade all year and today is no exception.",
    ),
    ("mean_reversion", "long"): (
        "It is falling for a reason: earnings were cut in half. Cheap can get a lot cheaper.",
        "Momentum to the downside is accelerating and I see no floor. Catching this knife is a bad idea.",
        "Each attempt to lift it lasts an hour before the sellers are back.",
        "The mean itself is dropping, so price will get there by going sideways while the trend continues"
        " lower.",
        "Sell it. The collapse has only begun.",
        "Stretched does not mean finished. I expect another leg down.",
    ),
    ("mean_reversion", "short"): (
        "It is rising for a reason: the takeover was confirmed. Expensive can get a lot more expensive.",
        "The advance is gaining speed and nobody is offering stock. Standing in front of this is a bad idea.",
        "Each small drop lasts an hour before the buyers are back.",
        "The mean is climbing quickly and will catch up with price, not the other way round.",
        "Buy it. The rally has only begun.",
        "A strong market stays strong. I expect another leg up.",
    ),
    ("momentum_continuation", "long"): (
        "The big bar was a blow-off. It has been given back in full and then some.",
        "Sellers stepped in right at the top of the bar and have been in charge ever since.",
        "That spike was stop hunting. Real demand is missing and price is sliding back to where it came "
        "from.",
        "Price closed on its low after an early pop. The path from here is down.",
        "It looks tired up here; I would take the other side.",
        "The thrust was answered by an even wider bar in the opposite direction.",
    ),
    ("momentum_continuation", "short"): (
        "The big down bar was capitulation. It has been recovered in full and then some.",
        "Buyers stepped in right at the bottom of the bar and have been in charge ever since.",
        "That plunge was stop hunting. Supply is missing and price is climbing back to where it came from.",
        "Price closed on its high after an early scare. The path from here is up.",
        "The drop has run its course; I would take the other side.",
        "The sell-off was answered by an even wider bar in the opposite direction.",
    ),
    ("squeeze_breakout", "long"): (
        "Pressure is building at the bottom of the box and the first break will be to the downside.",
        "It left the range through the floor.",
        "The top of the box rejected price three times today and the tape is soft. This resolves lower.",
        "The move out of the top lasted two bars before it collapsed into the range and out of the other "
        "side.",
        "Put buying picked up sharply and offers are stacked overhead. I would position for a drop.",
        "Every quiet spell this year has ended in a slide and this one will too.",
    ),
    ("squeeze_breakout", "short"): (
        "Pressure is building at the top of the box and the first break will be to the upside.",
        "It left the range through the roof.",
        "The bottom of the box held three times today and the tape is firm. This resolves higher.",
        "The move out of the bottom lasted two bars before it reversed into the range and out of the "
        "other side.",
        "Call buying picked up sharply and bids are stacked underneath. I would position for a rise.",
        "Every quiet spell this year has ended in a rally and this one will too.",
    ),
}

DENIED: Texts = {
    ("trend_pullback", "long"): (
        "The uptrend ended in March, and what looks like a pullback is the first leg of the decline.",
        "There is no uptrend to speak of.",
        "I cannot call this a dip; it has lost two months of gains.",
    ),
    ("trend_pullback", "short"): (
        "The downtrend is a thing of the past.",
        "This isn't a throwback any more, it is a new bull market.",
        "Calling it a relief rally misses the point: the trend has changed.",
    ),
    ("channel_breakout", "long"): (
        "There was an upside breakout for all of ten minutes, then it was gone.",
        "A new high it is not.",
        "The upside breakout never happened; the close was back inside.",
    ),
    ("channel_breakout", "short"): (
        "The new low was a bad print and has been cancelled.",
        "No downside breakout here, only noise at the lower edge.",
        "What was a downside breakout at noon had been reversed by the close.",
    ),
    ("mean_reversion", "long"): (
        "It was oversold last week but that has been worked off.",
        "I don't think oversold describes a market at fair value.",
        "Price is no longer below its mean.",
    ),
    ("mean_reversion", "short"): (
        "People call it overbought. The numbers say otherwise.",
        "The former overbought reading is gone.",
        "It isn't above its mean, and there is nothing to revert.",
    ),
    ("momentum_continuation", "long"): (
        "Buyers in control? For one bar, and then they left.",
        "The upward thrust was an error trade and the exchange broke it.",
        "Bullish momentum used to be the story here. It isn't today.",
    ),
    ("momentum_continuation", "short"): (
        "Sellers in control is yesterday's story.",
        "I see neither a downward thrust nor anyone pressing.",
        "Bearish momentum has evaporated.",
    ),
    ("squeeze_breakout", "long"): (
        "The break above the range did not survive the hour.",
        "It is hard to see a release upward in a market that closed at its low.",
        "Whether the squeeze resolves up was settled today: it did not.",
    ),
    ("squeeze_breakout", "short"): (
        "The break below the range was reclaimed at once.",
        "There won't be a release downward as long as bids keep refilling.",
        "That the squeeze resolves down is what everyone expects, and they are mistaken.",
    ),
}
