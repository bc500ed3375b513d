"""Whole rationales, written from the descriptions of the playbooks alone; counted once, after the reading was
finished.
"""

from schemas.vocabulary import Direction

Texts = dict[tuple[str, Direction], tuple[str, ...]]

RIGHT: Texts = {
    ("channel_breakout", "long"): (
        "Close through the upper channel = buy. Stop under the 20-bar mean, trail it, done.",
        (
            "Price has been leaning on the ceiling of its range, and each sell-off from there has been "
            "smaller than the last. A close at a new high would tell me that the supply up here has been "
            "absorbed; I want to own it then, not before."
        ),
        (
            "The literature on persistence suggests, albeit with wide error bands, that closes outside a "
            "recent trading band tend to be followed by drift in the same direction. An upside breakout "
            "here is a modest application of that finding: we expect to be wrong more often than right, "
            "and rely on the asymmetry of the bracket."
        ),
        (
            "I don't love paying up after a quiet stretch, but missing an upside breakout has cost me "
            "more over the years than the false ones did. Size is small by construction, and if it closes"
            " back under the mean I'm gone without argument."
        ),
        (
            "1) price sits just beneath the upper channel, 2) it holds above the 20-bar average, 3) it "
            "isn't stretched yet. If the close confirms, go with it. Risk: a false break, which is what "
            "the invalidation is for."
        ),
        (
            "Everybody says sell the top of the range because so far that has worked. It works until it "
            "doesn't; a close at a new high is exactly the moment when those shorts have to cover."
        ),
        (
            "What would a contrarian say? “Fade it, breakouts fail.” Many do. But the failures are cheap,"
            " being cut at the mean, whereas the one upside breakout that runs pays for several of them."
        ),
        (
            "Wait for the close above the upper channel; do not anticipate it. Then buy, place the stop "
            "two ATR away and let the trailing mean take you out."
        ),
        (
            "Who is left to sell once the market closes at a new high? Holders are in profit, shorts are "
            "under water, and the only natural offers are a bit of profit taking."
        ),
        (
            "The bear case is a tired market that pokes above resistance, traps late buyers and rolls "
            "over. I would be out on a close back through the average, and might even flip short "
            "afterwards; until that happens the upside breakout has the benefit of the doubt."
        ),
        (
            "It would not be unreasonable to expect follow-through should the instrument settle beyond "
            "its upper channel, given how little ground it has given back. Conviction is kept near the "
            "base rate."
        ),
        (
            "Sellers pushed it down hard earlier and couldn't keep it there. Since then every decline was"
            " bought a bit higher, and now we press against the upper channel. A close thruogh it and I "
            "join."
        ),
        (
            "long on close > upper channel, nothing fancy. wins less than half the time, winners run w/ "
            "the trail. no close, no trade."
        ),
        (
            "If the close does not confirm we do nothing. If it does, the new high leaves no overhead "
            "supply from recent bars, and the path of least resistance is up."
        ),
        (
            "Long-term I have no view and need none; this is a short-term trade. The market presses the "
            "top edge of its range, an upside breakout would draw in the trend followers, and the "
            "stop-loss sits where the idea is plainly wrong."
        ),
        (
            "My colleague would rather short this “double top”. I disagree – a double top that closes at "
            "a new high isn't a double top any more, it's a launch pad, and his stop is my fuel."
        ),
    ),
    ("channel_breakout", "short"): (
        (
            "Sell the close under the lower channel, cover if it gets back over the mean. That's all "
            "there is to it."
        ),
        (
            "Price keeps sagging to the floor of its range and the bounces get feebler. Once it closes at"
            " a new low, everyone who bought the floor is wrong at the same moment, and their exits are "
            "our move."
        ),
        (
            "Support that has been tested this often is not strong, it is used up. I'm short on a "
            "downside breakout, with the stop beyond the 20-bar mean, and I don't need to be right more "
            "than two times in five."
        ),
        (
            "Thesis in brief: the market rests on the bottom of its band; a settlement beneath it would "
            "be a downside breakout and would transfer control to those already short. Antithesis: the "
            "break is false and we are squeezed back into the band. Synthesis: act only on the close, and"
            " leave at the mean."
        ),
        (
            "Do not front-run. Let it close below the lower channel first, then go short and trail the "
            "stop down behind the average."
        ),
        (
            "Yes, it looks cheap, and yes, half the room wants to bottom-fish. Cheap things print a new "
            "low all the time, and nobody who bought them on the way felt expensive."
        ),
        (
            "Risks first: a short squeeze off the lows is nasty and quick, and I'd be stopped out if "
            "price recovers the mean. Having said that, a close under the lower channel is the cleanest "
            "evidence we get that the bid has gone."
        ),
        (
            "The bulls' argument is that this level has held before. It has. That is precisely why so "
            "many stop-losses lie beneath it, and why a downside breakout tends to travel."
        ),
        (
            "brk of lower channel → short, 2 ATR stop, tgt 1.5x. if it pops back over the 20 mean it was "
            "a fakeout and we're flat."
        ),
        (
            "I was long here a while ago and took my medicine. Nothing in the tape since then makes me "
            "want to try again: the rallies stall under the average, and a new low would finish the "
            "argument in the sellers' favour."
        ),
        (
            "Perhaps the most honest thing to say is that we don't know why it is weak. We needn't. A "
            "downside breakout from a band this well watched forces positions to change hands, and the "
            "change is towards lower prices more often than our payoff requires."
        ),
        (
            "If buyers turn up and it closes back inside and above the mean, I'm out and I might even go "
            "long. If they don't, the new low opens an area where nothing has traded lately to lean on."
        ),
        (
            "Not that I would never buy it – just not while it is closing beneath its lower channel. Here"
            " the only side that gets paid for waiting is the short side."
        ),
        (
            "Would you want to be the last buyer above a floor that everyone can see? Neither would they."
            " A downside breakout empties the room."
        ),
        (
            "The colour of the tape is unmistakable: lower highs, closes near the lows, price beneath its"
            " 20-bar mean but not yet overextended. A close at a new low completes the picture and is our"
            " signal to be short."
        ),
        (
            "Setup ok (close near lower channel, under ema). Trigger still missing. When it comes: sell, "
            "stop above mean, time stop if it goes nowwhere."
        ),
    ),
    ("mean_reversion", "long"): (
        "Oversold. Buy the turn, half off at 1R, rest to target.",
        (
            "The sell-off has carried price well below its mean, further than its usual swings reach. I "
            "want to buy once it takes out the high of the setup bar, because that is the first sign that"
            " the people pushing it down have finished."
        ),
        (
            "Everyone hates it today, which is rather the point. Rubber bands this stretched tend to snap"
            " back up, and we only need them to get part of the way."
        ),
        (
            "I am not calling a bottom. I am saying that the market is oversold by its own standard, that"
            " it is no downtrend, and that a bounce toward the twenty-bar average is likelier than the "
            "panic on the screen suggests."
        ),
        (
            "Deviations of this size from a short moving average have, in sideways markets, a weak "
            "tendency to be corrected within a handful of bars. With price this far below its mean, a "
            "long position with a near target and a strict stop is a reasonable expression of that "
            "tendency, provided price has first shown that it is turning."
        ),
        (
            "Sellers had it all their way for several bars – fine. But did they get paid for the last "
            "leg? Each push down bought less, the market is oversold, and shorts who are in profit will "
            "want to take it."
        ),
        (
            "Buy only on a close above the setup bar's high. No turn, no trade: an oversold market can "
            "get more oversold, and catching knives isn't in the plan."
        ),
        (
            "Bear case: this is the start of something worse, and the five-bar low gives way. Then I'm "
            "out, no debate, perhaps even short later. Base case: we snap back up towards the mean within"
            " days and I scale half on the way."
        ),
        (
            "Pros: stretched, range-bound, defined risk. Cons: falling fast, sentiment awful. Net: "
            "oversold enough for a small long once it turns."
        ),
        (
            "A momentum trader will say “never buy weakness”. Over months he may be right. Over the next "
            "few bars, with price this far below its mean in a market that goes sideways, I would rather "
            "be on the other side of his trade."
        ),
        (
            "I have doubts about the size – it's moving a lot – but the code takes care of that. The idea"
            " itself is simple: too far, too fast, below its mean, and due a breather upwards."
        ),
        (
            "It isn't as though nothing bad happened; it's that the price has already paid for it. "
            "Oversold conditions like this one usually end in a sharp short-covering bounce, and we wait "
            "for the first close that shows it."
        ),
        (
            "z-score deep in the red = oversold, structure mean reverting, trend flat. long vs the 5 bar "
            "low, exit quick, dont marry it."
        ),
        (
            "The crowd is short and late. When late shorts cover, prices snap back up, and they do it in "
            "two or three bars rather than twenty, so the short horizon suits."
        ),
        (
            "Were the trend down I'd leave this alone, since oversold readings in a downtrend mean "
            "little. It is not: the market has been rotating around its average, and a visit this far "
            "underneath has been an invitation to buy, with the stop just beyond the recent low."
        ),
        (
            "Consider what we would be paying for and what we would be risking: a return toward the "
            "average against a marginal new extreme. With the market trading far below its mean, that is "
            "a bet I'll take once buyers show their hand."
        ),
    ),
    ("mean_reversion", "short"): (
        "Overbought, range market. Short the first close under the setup bar's low, stop above the spike.",
        (
            "The rally has outrun itself. Price stands a long way above its mean in a market with no "
            "trend to speak of, and as soon as a bar closes under the low of the setup bar I want to be "
            "short for the trip back."
        ),
        (
            "I like the asset. I might well own it long-term. That doesn't stop me from selling it for a "
            "few bars when it is overbought and the buyers have run out of breath."
        ),
        (
            "What goes up this fast in a sideways market tends to snap back down, and the late longs will"
            " do the selling for us."
        ),
        (
            "The evidence for short-horizon reversal is modest but persistent: moves of several standard "
            "deviations away from a local average are, on balance, followed by partial retracement where "
            "no trend prevails. Price is above its mean by such a distance. A short with a close target "
            "is therefore indicated, conditional upon a turn."
        ),
        (
            "Three reasons to be short here: stretched z-score, no uptrend behind it, and everyone I talk"
            " to is suddenly bullish. One reason to be careful: overbought can stay overbought. Hence the"
            " trigger."
        ),
        (
            "Do not sell into the vertical bit. Wait for the turn, then sell, take half at 1R, and don't "
            "get greedy; when it's overbought like this the easy part is the first half of the way back."
        ),
        (
            "The crowd is chasing and says “buy every breakout”. Maybe. But with price so far above its "
            "mean, whoever buys now needs another buyer to pay up even more, and I doubt he's there."
        ),
        (
            "If it makes yet another high beyond the last five bars I'm simply wrong and stopped out, and"
            " I'd not argue. If it doesn't, the stretch unwinds and we snap back down toward the average."
        ),
        (
            "Buyers were in a hurry, shorts got squeezed, and now that the squeeze is done who is "
            "supposed to keep it up here? Overbought without a reason to stay so; I sell the turn."
        ),
        (
            "I can't rule out that this is the birth of a real bull move, and a short against a real bull"
            " move is a painfull thing. That's why the stop is near and the size is small. But the odds "
            "at this distance above its mean favour a pause at the very least."
        ),
        (
            "Short-term fade. Overbought on the 20-bar z, sideways regime, target inside the range. Flat "
            "after 8 bars whatever happens."
        ),
        (
            "The bull case deserves a hearing: strong closes, no give-back, shorts in pain. I grant all "
            "that. Even so, strong rallies in rotating markets usually hand back a good part of the last "
            "leg, and with the market overbought I would rather sell that leg than pay for it."
        ),
        (
            "Nobody rings a bell, but profit taking starts somewhere, and it starts most often where "
            "price is furthest above its mean. A close under the setup bar's low would be the bell."
        ),
        (
            "Not a trend trade, not a macro call, not a view on fair value. Merely an overbought market "
            "which, when it turns, should give us a couple of bars in our favour on the sell side."
        ),
        (
            "Frankly, I'd feel better if it were more tired, and I won't touch it before it rolls. Once "
            "it does, expect it to snap back down quicker than it went up: there is little traded volume "
            "to catch it until the average."
        ),
    ),
    ("momentum_continuation", "long"): (
        "Wide bar up, closed on its high, trend with it. Bullish momentum – join above the bar.",
        (
            "That was a proper bar: broad range, close near the top, over the prior high. Buyers in "
            "control, trend already pointing north, so the next close beyond it gets me long."
        ),
        (
            "I know it feels late. It always feels late after an upward thrust, and yet waiting for a "
            "comfortable entry is how one ends up watching."
        ),
        (
            "The thrust bar reveals urgency: somebody with size paid up rather than wait. In an "
            "established advance such urgency is seldom satisfied within one bar, and bullish momentum "
            "usually carries on for a while. Our stop under the ten-bar mean recognises that it doesn't "
            "always."
        ),
        (
            "Checklist – trend: up. Bar: wide, closes in upper third, above yesterday's high. Trigger: "
            "close over its high. Exit: ema 10. Verdict: buyers in control, buy."
        ),
        (
            "“Sell into strength,” they say. Into a spent rally, gladly; into an upward thrust that has "
            "only just begun in the direction of the trend, no thanks."
        ),
        (
            "Buy the close above the bar that made the upward thrust. Trail with the short average. Don't"
            " add, don't hope."
        ),
        (
            "Bears will point to how extended the last bar looks. If they are right it closes back under "
            "the ten-bar mean and I'm out with a scratch, maybe reversed. If they're wrong, they'll be "
            "buying it back from us at higher prices, because bullish momentum feeds on trapped shorts."
        ),
        (
            "Sellers tried it twice in this advance and were run over both times. With buyers in control "
            "again, I would need a good reason not to be long, and I can't find one."
        ),
        (
            "There is some chance – not a small one – that this bar was the climax. I weigh it at rather "
            "more than even that the trade fails, and still like it, since an upward thrust which does "
            "continue pays more than the failures cost."
        ),
        "upward thrust w/ trend, tight trail, 12 bars max. simple as that.",
        (
            "Is this initiative or just shorts covering? It hardly matters for a few bars: either way "
            "there are more who must buy than who must sell, and the close near the high says buyers in "
            "control."
        ),
        (
            "It is not that I don't see the risks: profit taking after such a bar is normal, and a "
            "stop-loss run under it wouldn't surprise anyone. But the stop is farther away than that, and"
            " bullish momentum has the moving averages behind it."
        ),
        (
            "Only if the next close clears the bar do we act. That condition filters the one-day wonders;"
            " what remains is an uptrend with an upward thrust on top, and such moves have a habit of "
            "going further than anybody is prepared to pay for."
        ),
        (
            "From my desk: I got chopped to bits shorting bars like this one when I was younger. Lesson "
            "learnt. When there's bullish momentum in an up market I go with it or I go for lunch."
        ),
        (
            "The averages are in the right order, the last bar exceeded its normal range and ended near "
            "its peak, and nobody was able to sell it off into the close. We infer buyers in control and "
            "propose to follow them, with an exit should the ten-bar mean give way."
        ),
    ),
    ("momentum_continuation", "short"): (
        "Big red bar, close on the lows, trend down. Bearish momentum, sell the next close below it.",
        (
            "They hit every bid today and nobody stood in the way. Sellers in control; if it closes under"
            " the bar's low, I'm short with them and the stop goes over the ten-bar average."
        ),
        (
            "I never enjoy selling after a downward thrust – it always looks as if the bounce must come "
            "right now. Mostly it comes later, and from lower."
        ),
        (
            "A bar of unusual range which closes near its low within a decline shows that holders are "
            "willing to give up price in exchange for immediacy. Such liquidation is rarely finished in "
            "one session. We therefore follow the bearish momentum, while accepting that the majority of "
            "these trades may not reach their target."
        ),
        (
            "- downtrend intact - thrust bar wider than ATR - close in the bottom third, under the prior "
            "low - sellers in control. Short on confirmation, cover above ema10."
        ),
        (
            "Value buyers will tell you it's on sale. It was on sale last week too. As long as sellers "
            "are in control – sellers in control, I repeat – a discount is just the next price on the way"
            " down."
        ),
        (
            "Sell the confirmation, not the hope of a bounce. The downward thrust has told you who is in "
            "a hurry."
        ),
        (
            "Where could this go wrong? A short squeeze, obviously: everyone leans the same way after "
            "such a bar. Back above the ten-bar mean I cover and may even consider the long side. Short "
            "of that, bearish momentum rules."
        ),
        (
            "Who, exactly, is going to buy this? The longs are hurt, the shorts are comfortable, and a "
            "downward thrust in a falling market gives neither a reason to change their mind."
        ),
        (
            "A contrarian might say: “Capitulation! Load up!” Capitulation usually comes at the end of a "
            "decline and with a reversal bar; this one closed at its worst with the trend, which looks to"
            " me like bearish momentum in its prime."
        ),
        (
            "Buyers had a nice run in spring, I don't deny it. That run is broken, the averages have "
            "crossed over, and the latest downward thrust shows where the pressure is now."
        ),
        (
            "Conviction moderate. The bar is convincing, the trend strength so-so. But it's not as if "
            "there were no case: sellers in control at the close, no tail to speak of, and a stop that "
            "costs little if I misread it."
        ),
        (
            "short below thrust bar low. trail ema10. bearish momentum + trend = my bread & butter, 40% "
            "winners is plenty."
        ),
        (
            "Unless the next bars take out the low, leave it be. If they do, the downward thrust has been"
            " accepted by the market, and accepted moves in the direction of the trend tend to continue "
            "before the first real rally."
        ),
        (
            "Long-term holders may shrug at this. We aren't long-term holders: for the next dozen bars "
            "the tape belongs to whoever sells first, momentum is bearish momentum in the textbook sense,"
            " and I want to be on that side of it."
        ),
        (
            "The rally attempts are getting shorter and the declines longer; yesterday's bar was the "
            "widest of them and ended at its low. I read sellers in control and go short on confirmation,"
            " half expecting a shakeout first, wich the stop should survive."
        ),
    ),
    ("squeeze_breakout", "long"): (
        "Range is dead quiet. Break above the range → buy stop just over the bar. Below the mean I'm out.",
        (
            "Bandwidth is near its lowest of the year, price in the upper half. My bet is that the "
            "squeeze resolves up, and a buy stop makes the market prove it before I pay."
        ),
        (
            "Quiet markets don't stay quiet. With price holding over its mean all through the coil, I "
            "expect the release upward, and I want to be in early rather than chase."
        ),
        (
            "Volatility clusters but also reverts: periods of exceptionally narrow bandwidth are on the "
            "whole followed by expansion. The sign of that expansion is not given by the compression "
            "itself; we take it from the close, and a break above the range is the condition on which "
            "this plan goes long."
        ),
        (
            "Don't guess the side. Let it close over the short channel, leave the stop order above that "
            "bar, and get filled only if the squeeze resolves up for real."
        ),
        (
            "The options crowd is short volatility and the chartists are short the top of the box. If we "
            "get a break above the range both have to buy, and neither will be polite about it."
        ),
        (
            "Bear case: false break, back through the 20-bar mean, everyone who chased gets to feel "
            "silly, me included. I'd lose one unit. Bull case: release upward from a long base, which is "
            "worth more than one unit. One gets there often enough."
        ),
        (
            "I don't care much what it is that sets it off. Sellers couldn't press it out of the lower "
            "half of the box in all this time, so odds are that the squeeze resolves up."
        ),
        (
            "Narrow bands. Price > sma20. Waiting for: break above the range. Plan: stop entry, b/e at "
            "1R, 15 bars. No follow through = no position."
        ),
        (
            "Could it resolve lower instead? Sure, and then this plan simply never fills; a separate one "
            "may deal with the short side. What we're positioned for here is a release upward, and it "
            "costs nothing until it happens."
        ),
        (
            "It isn't unlikely that nothing happens for several bars more. Patience is cheap. When it "
            "does break above the range the stored energy works for us, and after 1R the stop is at entry"
            " anyway."
        ),
        (
            "I'd normally be sceptical of breakouts, having donated enough money to false ones. This one "
            "I'd take: bandwith this low is rare, the closes hug the upper half, and a break above the "
            "range needs confirmation by a trade beyond the bar."
        ),
        (
            "Remember how the last coil ended: with a flush that shook everyone out. Nothing says it must"
            " be so again, since this time the market has held over its average, and from there the "
            "squeeze resolves up more naturally than down."
        ),
        (
            "Why buy a market that does nothing? Because the stop is close when it does nothing, and the "
            "target is far when it stops doing nothing. A release upward is the event we are paid for."
        ),
        (
            "Dear diary: bored to tears by this chart, which in my experience is when to set the alert. "
            "Break above the range and I'm a buyer, no ifs; a fall back under the mean and I'm a seller "
            "of everything I bought."
        ),
        (
            "Short sellers near the top of the range have been comfortable for too long. A modest push "
            "triggers their stop-losses, the squeeze resolves up, and what began as a drift becomes a "
            "scramble. Should it fail, the invalidation at the mean keeps the damage small."
        ),
    ),
    ("squeeze_breakout", "short"): (
        "Tight coil, price under the mean. Sell stop below the bar once we break below the range.",
        (
            "The bands have hardly been narrower this year and the closes sit in the lower half of the "
            "box. I think the squeeze resolves down; the sell stop is there in case I think too much."
        ),
        (
            "Compression stores a move without telling which way. The tell comes with the close: a break "
            "below the range, confirmed by trading through the bar's low. Only then are we short, and a "
            "return above the twenty-bar mean ends it."
        ),
        (
            "Everyone's looking for the pop because the last two pops paid. Few are prepared for a "
            "release downward, which is why it would travel."
        ),
        (
            "List of what I like: low bandwidth rank, weak half of the range, cheap stop. List of what I "
            "don't: no momentum yet. The missing piece arrives if we break below the range, and without "
            "it I have no trade."
        ),
        (
            "Buyers have had weeks to lift this and have managed to keep it level. When effort yields "
            "nothing, the release downward is the more probable outcome – not certain, merely more "
            "probable."
        ),
        (
            "Place the sell stop a shade beneath the bar that closes outside. Move it to entry after 1R. "
            "If the squeeze resolves down as I expect it'll be quick; if it dawdles, the time stop cleans"
            " up."
        ),
        (
            "A false break is the obvious danger, and a short squeeze from there would be ugly: I'd be "
            "stopped out above the mean and would deserve it. I accept that because a true break below "
            "the range usually pays well over what the false ones cost."
        ),
        (
            "it's coiled like a spring & leaning on the floor. squeeze resolves down imo, short the "
            "break, flat above sma20"
        ),
        (
            "Is it not odd that nobody sells? They will. Positions built in a calm market carry stops "
            "right underneath it, and the first break below the range sets them off one after another."
        ),
        (
            "A bullish friend insists that “bases are for buying”. When price sits over its average, he's"
            " often right. Here it sits under, the lid gets lower, and I would sooner be short for the "
            "release downward than long for his hope."
        ),
        (
            "Realised volatility at such low percentiles has historically been an unstable state; it "
            "tends to be left abruptly. Given that price occupies the lower part of its band, we "
            "condition on a release downward and take the short side, with the risk limited to the "
            "distance beyond the mean."
        ),
        (
            "I have no opinion until it moves. Once it moves below the box, my opinion is that the "
            "squeeze resolves down, and I'll keep that opinion for fifteen bars or until the market "
            "closes back over its mean, whichever comes first."
        ),
        (
            "The earlier advance that led into this range is ancient history; the energy of it has bled "
            "away. What's left is a flat, heavy market, from which a break below the range would catch "
            "the long-term bulls off guard."
        ),
        (
            "If it goes up instead, fine, I've lost nothing because the order was never touched. If it "
            "goes down, the release downward should be worth a multiple of the narrow stop. Asymmetry, "
            "not clairvoyance."
        ),
        (
            "Sizing is automatic, so all I have to judge is the side. Heavy closes, fading bounces, price"
            " beneath sma 20, bandwidth among its lowest: I judge that the squeeze resolves down and I'd "
            "sell the confirmation."
        ),
    ),
    ("trend_pullback", "long"): (
        "Uptrend, dip to the 20. Buy the turn, bid a touch under the trigger close.",
        (
            "The trend is up and price has come back to its average in good order. A close over the setup"
            " bar's high tells me that the pullback is done, and I'd like to be long from there."
        ),
        (
            "I missed the first leg and refused to chase it. Now there's a pullback to the mean, the "
            "thing I was waiting for, and it would be silly to get scared just because it's red today."
        ),
        (
            "Established advances rarely proceed in a straight line. Retracements towards a medium-length"
            " average serve to transfer holdings from the impatient to the patient, after which the "
            "uptrend tends to be resumed; the close beyond the setup bar's extreme is our evidence that "
            "the transfer has taken place."
        ),
        (
            "Buy the dip – but only when it has stopped dipping. That means a close above the bar's high,"
            " then a limit slightly lower."
        ),
        (
            "Sellers will say that the top is in. They said so at the previous two retracements as well. "
            "As long as it holds within an ATR of the average, this is a pullback and not a reversal, and"
            " I side with the trend."
        ),
        (
            "Risk section: if it closes an ATR beneath the mean the whole idea is void, and I'm out, "
            "perhaps even looking at shorts. Reward section: the uptrend resumes and we've bought it at "
            "the average rather than at the high."
        ),
        (
            "Short-term weakness, long-term strength. Profit taking brought it down to the 20-bar mean; "
            "profit takers are not the same as bears, and once they're done the dip gets bought."
        ),
        (
            "trend up (20 over 50 by plenty), dip under ema & recovered, trigger = close > setup high. go"
            " long, 15 bars, no heroics"
        ),
        (
            "Can I be sure it's not rolling over? No. Can I find out cheaply? Yes: the stop is close to "
            "where the pullback would stop being one, and until then the trend deserves the benefit of "
            "the doubt."
        ),
        (
            "The crowd got shaken out this morning – lots of talk about a double top, lots of new shorts."
            " In a healthy uptrend that's what lows of a retracement sound like."
        ),
        (
            "I wouldn't say there is no reason to worry; momentum has cooled and the dip is deeper than "
            "the last. But it's still a dip in a rising market, I'm asked to pay less than last week's "
            "buyers did, and the trigger makes me wait for proof."
        ),
        (
            "A contrarian would fade the trend here; “trees don't grow to the sky”, he'd write. This tree"
            " need only grow a little. The pullback has brought the entry near to the stop, so a modest "
            "resumption is enough."
        ),
        (
            "If buyers defend the mean and we close above the setup bar, get long. If they don't, stand "
            "aside; there will be another pullback. Either way the uptrend sets the side and the average "
            "sets the risk."
        ),
        (
            "Nothing about the last few bars looks like distribution to me: small ranges, overlapping "
            "closes, a half-hearted drop to the average. Uptrends breathe, and this is the uptrend "
            "breathing. I'd favour the long side on the first sign of it inhaling."
        ),
        (
            "Half the desk wants to sell this becuase it broke yesterday's low. Look one timeframe wider:"
            " the averages are rising, the dip has merely touched the nearer one, and the shorts who pile"
            " in at the mean tend to be next week's buyers."
        ),
    ),
    ("trend_pullback", "short"): (
        "Downtrend, relief rally into the 20-bar mean, fading. Short the close under the setup bar.",
        (
            "The market's in a downtrend and has bounced to its average, as falling markets do. When a "
            "bar closes below the setup bar's low the bounce is over, and I'd sell there, or a quarter "
            "ATR better if they let me."
        ),
        (
            "I don't sell holes, I sell throwbacks. This is a throwback to the mean in a market that's "
            "been going down, and it gives me a stop which isn't miles away."
        ),
        (
            "Rallies against a prevailing decline are commonly driven by covering rather than by fresh "
            "demand. Having returned to the mean of its last twenty bars, the present relief rally has in"
            " all likelihood consumed most of that covering; a close under the setup bar's low would be "
            "consistent with the resumption of the decline."
        ),
        (
            "Why is everyone so cheerful? It is up a little, in a downtrend, into the average from below."
            " I've seen more convincing recoveries from a dropped ball."
        ),
        (
            "Let the relief rally run out of steam on its own. Then sell. Stop an ATR and a half past the"
            " mean, no averaging, no excuses."
        ),
        (
            "The bull case: this is the low, and the rise to the mean is the first leg of a new advance. "
            "If it closes an ATR over the average I'll concede, cover, and maybe go long. Until such time"
            " the downtrend is a fact and the new advance a hope."
        ),
        (
            "downtrend ok, throwback to ema20 ok, trigger pending. short on close < setup low. rr 1.5, "
            "dont chase."
        ),
        (
            "Buyers look brave after three green bars; they looked brave on the prior bounce as well. In "
            "a downtrend, bounces to the mean are where I want to be selling to brave people."
        ),
        (
            "A word on the risk of a short squeeze: it's real, as shorts are crowded. Then again the "
            "squeeze has arguably just happened – that is what the relief rally was – and those who had "
            "to cover have covered."
        ),
        (
            "I hesitate a little, because the rise was steeper than I'd like. But steep or not, the "
            "relief rally has stalled where its kind usually stalls, and the slope of the longer average "
            "hasn't changed. Small short, by the book."
        ),
        (
            "My neighbour at the desk says “buy the recovery”. I ask him what has recovered: the averages"
            " still point down, the highs are still lower, and price has come no farther than the mean. "
            "That's a throwback, and I'd rather sell it."
        ),
        (
            "Not until it turns, though. A relief rally that keeps closing higher is none of my business;"
            " one that closes under the low of its setup bar in a downtrend very much is."
        ),
        (
            "Short-term traders see strength, longer-term ones an opportunity to get out at a better "
            "price. I expect the latter to win: the downtrend is well established by the distance of its "
            "averages, and the supply waiting at the mean isn't gone."
        ),
        (
            "Plan: (a) trend down, (b) throwback to the 20, (c) sell the failure. What could hurt: a "
            "close well over the mean. What I'd do then: be out already."
        ),
        (
            "Having been run over by the last leg down while long, I can tell you how holders feel at "
            "these prices: relieved, and keen to sell. That is the psychology behind every throwback, and"
            " it's why I favour the short side when price begins to slip again."
        ),
    ),
}

CONTRARY: Texts = {
    ("channel_breakout", "long"): (
        (
            "Sell short into this upside breakout. Late money is chasing the top of the range and I'd "
            "happily take the other side of it."
        ),
        (
            "I would not take this trade: the upper channel is close, but there's nothing behind the "
            "move, and cash is the better position."
        ),
        (
            "Ah, another new high. Surely the people who bought the last four of those will tell us how "
            "well it went."
        ),
        (
            "A poke over the upper channel is the most dependable way to find the top in this market; it "
            "has the staying power of a soap bubble."
        ),
        (
            "As we now know, the upside breakout went on for weeks and never once came back to the mean, "
            "so buying it was the right call."
        ),
        (
            "There's no need to wait for a close beyond the upper channel. Whether a new high prints or "
            "not is a detail; be long at once, the confirmation only costs money."
        ),
        (
            "Copper is the one with the upside breakout. What we are looking at here is a different chart"
            " altogether, and a rather sleepy one, but the enthusiasm over there should be enough for us."
        ),
    ),
    ("channel_breakout", "short"): (
        (
            "Buy it. A downside breakout that everybody has been waiting for is a bear trap, and I want "
            "to be long when it springs."
        ),
        "Stay out. The new low is noise, the costs eat the rest, and no position is worth having here.",
        (
            "So it makes a new low by a whisker and we're all meant to tremble? The last dozen scares of "
            "that sort were the best prices of the year."
        ),
        (
            "Below the lower channel the big hands are waiting with open arms, and they have never paid "
            "so little for so much."
        ),
        (
            "The regulator confirmed this morning that the fund is being wound up and must dump its "
            "entire holding by Friday, so the downside breakout cannot fail."
        ),
        (
            "In hindsight it's plain that the downside breakout marked the beginning of the great slide; "
            "by the end of the following month it had lost a third."
        ),
        (
            "If one is fair, the lower channel hasn't really been under pressure at all: price floats "
            "comfortably in the middle of its range, the lows are rising, and the mood is turning for the"
            " better."
        ),
    ),
    ("mean_reversion", "long"): (
        "It's oversold for a reason: sell more. I'd be short here with both hands.",
        "Let this one go. Oversold or not, I see no trade in it and would rather do nothing.",
        (
            "Oversold, they said, two bars ago. Oversold, they said, four bars ago. I admire the stamina,"
            " if not the account statement."
        ),
        (
            "A market that lies this far below its mean has usually just begun to discover what it's "
            "worth, and the discovery goes on in the same direction."
        ),
        (
            "Looking back, it did snap back up from exactly this bar and touched the average three "
            "sessions later, which proves the point."
        ),
        (
            "Price is hardly below its mean at all, the deviation is ordinary, and there's nothing "
            "stretched that could be relieved. That anything should rebound from the middle of nowhere is"
            " wishful."
        ),
        (
            "An insider whom I trust told me that the buyback starts tomorrow with half a billion, so it "
            "will snap back up whatever the chart says."
        ),
    ),
    ("mean_reversion", "short"): (
        (
            "Overbought is where good trends begin. Go long, add on strength, and leave the fading to the"
            " poor."
        ),
        "No short for me, thanks. Price above its mean is not a reason, the setup is poor, and I'd pass.",
        (
            "How many more times does it have to be overbought before the bears have lost enough? I ask "
            "for a friend, who happens to be enjoying the ride."
        ),
        (
            "Strength like this is not exhausted, it's introduced. Those who lean against it because it's"
            " above its mean will be the ones that carry it to the next floor."
        ),
        (
            "Oil is horribly overbought and ought to fall hard. This instrument doesn't have much to do "
            "with oil, yet a fall there feels like an omen here."
        ),
        (
            "We know by now how it ended: the market did snap back down two days after, all the way to "
            "the average, and the short covered at the low."
        ),
        (
            "There is no need to see it turn. A turn would only say what I already feel, which is that "
            "the thing is overbought; the order may as well go in while it is still climbing."
        ),
    ),
    ("momentum_continuation", "long"): (
        (
            "Sell the rip. Upward thrust or no upward thrust, this is distribution, and I'm going short "
            "against it."
        ),
        (
            "My advice is to keep your hands in your pockets: bullish momentum is not an edge after "
            "costs, so don't buy."
        ),
        (
            "Buyers in control? For about as long as it takes to read the sentence. The bar was their "
            "farewell party."
        ),
        (
            "The louder the bullish momentum is praised, the nearer we are to the moment when nobody is "
            "left to pay more. I hear a great deal of praise."
        ),
        (
            "A wide bar like that at the end of a long climb is what exhaustion looks like; from here "
            "gravity takes over and the air below is thin."
        ),
        (
            "The upward thrust of that day turned out to be the start of the strongest quarter on record,"
            " as every chart book since has shown."
        ),
        (
            "The central bank has secretly agreed to support this stock and its letter says so, which is "
            "why buyers in control will remain in control for ever."
        ),
    ),
    ("momentum_continuation", "short"): (
        "Cover everything and turn long. The downward thrust was the washout, and the low is in.",
        "There's bearish momentum, fine, but I'm not selling it and neither should you. Skip it.",
        (
            "Sellers in control, it says. Of what? Of an empty shop, with the goods already on their way "
            "to someone with deeper pockets."
        ),
        (
            "The last holder who could be frightened was frightened by that bar. What comes after a "
            "downward thrust when nobody is left to sell isn't hard to imagine."
        ),
        (
            "If that's bearish momentum, I'm a ballet dancer. One noisy bar, no trend worth the name, and"
            " by the close the bids were all back."
        ),
        (
            "Since the downward thrust in question led straight to the crash of the following week, being"
            " short was obviously correct."
        ),
        (
            "Wheat shows sellers in control after the harvest report, and wheat is what I'd be looking "
            "at. On this chart I couldn't tell you the first thing."
        ),
    ),
    ("squeeze_breakout", "long"): (
        "I'd sell any break above the range here; go short on it, with a stop above the box.",
        (
            "Nothing to do. Whether the squeeze resolves up is anyone's guess, I don't bet on guesses, "
            "and we should abstain."
        ),
        (
            "A break above the range! How thrilling. It'll be back inside before the champagne is cold, "
            "as is tradition in this name."
        ),
        (
            "Coils like this one have a trapdoor and not a skylight. Those who wait for a release upward "
            "are standing on it."
        ),
        (
            "The break above the range doesn't have to come; we buy in the middle of the box and spare "
            "ourselves the bother of a trigger."
        ),
        (
            "With what we've learnt since, the release upward was never in doubt: it doubled in the half "
            "year that came after."
        ),
        (
            "The merger was signed last night at a huge premium, according to nobody I can name, and so "
            "the squeeze resolves up at the open."
        ),
    ),
    ("squeeze_breakout", "short"): (
        "Buy the break below the range, don't sell it. The floor is elastic and I am long against it.",
        (
            "I want no part of this. If the squeeze resolves down it'll do so without me, as the odds "
            "aren't good enough to trade."
        ),
        (
            "They tell me a release downward is imminent. They've been telling me so through the whole "
            "base, while somebody has been patiently taking everything on offer."
        ),
        (
            "Whoever waits for it to break below the range will have to look up, I'm afraid, since the "
            "lid is thin and the cellar is made of concrete."
        ),
        (
            "Bandwidth is wide, swings are large, and calm is nowhere in sight; that the squeeze resolves"
            " down presupposes there is a squeeze."
        ),
        (
            "Nasdaq futures look ready for a release downward. Mind you, that's not our market, and ours "
            "hasn't followed it in ages."
        ),
        (
            "With the benefit of knowing the next chapter: the release downward came on the Tuesday and "
            "took it to its lowest in ten years, hence the short."
        ),
    ),
    ("trend_pullback", "long"): (
        "This isn't a pullback, it's a top. Sell it short and let the dip buyers finance the ride.",
        "Uptrend or not, I wouldn't buy this and I would advise against the trade altogether.",
        (
            "Buy the dip, and then the dip under that, and then the cellar. The uptrend will be so "
            "pleased to have you along."
        ),
        (
            "What used to be an uptrend has lost its footing; the averages are rolling over, and every "
            "recovery is used to get rid of stock."
        ),
        (
            "Calling it a pullback is generous. When the removal van is at the door, one doesn't speak of"
            " a short holiday."
        ),
        (
            "That dip was, as history shows, the last chance to get aboard before the famous rally, and "
            "the buyers of that day were richly rewarded."
        ),
        (
            "We needn't wait until it turns back up. The pullback may go as deep as it likes, below the "
            "mean and well past it; the deeper, the more I'd buy, with no level at which I would be "
            "wrong."
        ),
    ),
    ("trend_pullback", "short"): (
        (
            "The downtrend is finished. Be long: what they call a relief rally is the first leg of the "
            "recovery."
        ),
        (
            "I'd leave the short alone. A throwback this strong isn't for selling, and sitting on one's "
            "hands is free."
        ),
        (
            "A relief rally, is it? Funny how relieved everybody gets, day after day, at higher and "
            "higher prices."
        ),
        (
            "The downtrend died quietly some time ago. Those who are still selling every throwback in its"
            " memory are keeping the new owners well supplied."
        ),
        (
            "It is hard to find anyone who has made money lately by leaning on this throwback, and I "
            "don't expect to meet one soon."
        ),
        (
            "The ministry has already decided to ban imports from Monday, it just hasn't published it, so"
            " the relief rally will collapse."
        ),
        (
            "As it turned out, the relief rally failed that very afternoon and the downtrend made its "
            "final low in the autumn, so the short is justified."
        ),
    ),
}
