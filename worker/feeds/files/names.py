"""What columns of bar files are called: by our own names, and by those of other programs and languages.

Pure. The first of a list that a file has is taken; one of `NAMES` comes before all of `FURTHER`.
"""

# As a file of ours has them; two columns that claim one role are refused.
NAMES = {
    "time": ("time", "timestamp", "date", "datetime", "ts", "open_time"),
    "symbol": ("symbol", "ticker", "instrument"),
    "open": ("open", "o"),
    "high": ("high", "h"),
    "low": ("low", "l"),
    "close": ("close", "c"),
    "volume": ("volume", "vol", "v"),
}
DATES = (
    "date", "dates", "dtyyyymmdd", "trade_date", "quote_date", "day", "datum", "tag", "fecha", "data", "dato",
    "дата", "日期", "日付", "日付け", "データ日付",
)  # fmt: skip
# Around rows of a JSON document: never symbols.
CONTAINERS = frozenset(
    ("bars", "candles", "data", "history", "klines", "list", "ohlc", "ohlcv", "prices", "quote", "result",
     "results", "rows", "values")
)  # fmt: skip
OF_UTC = ("utc", "gmt_time", "utc_time")  # their times are in UTC
CLOCKS = ("time", "clock", "zeit", "uhrzeit", "hora", "heure", "ora", "godz", "tid", "время", "时间", "時刻")
# Looked for where a file has not all of those, without brackets and punctuation; earlier ones come first.
FURTHER = {
    "time": (
        "timestamp", "datetime", "date_time", *OF_UTC, "local_time", "ts_event", "unix_time",
        "open_timestamp", "bar_time", "window_start", "datum_zeit", "datum_uhrzeit", "zeitpunkt",
        "fecha_hora", "data_ora", "date_heure", *DATES, *CLOCKS, "begin", "start", "unix", "epoch", "ts", "t",
        "index", "unnamed_0", "",  # an index of pandas that has no name
        "time_period_start", "ticks", "id",
    ),
    "clock": CLOCKS,
    "symbol": ("symbol", "ticker", "instrument", "ts_code", "instrument_name", "ativo"),
    "open": (
        "open", "o", "bid_open", "px_open", "open_price", "opening_price", "price_open", "first",
        "eröffnung", "eröffn", "eröffnungskurs", "offen", "erster", "erster_kurs", "apertura",
        "abertura", "ouverture", "ouv", "ouvert", "aper", "otwarcie", "åben", "открытие", "откр",
        "开盘", "开盘价", "始値",
    ),
    "high": (
        "high", "h", "bid_high", "px_high", "high_price", "price_high", "max", "hoch", "höchst",
        "höchstkurs", "tageshoch", "máximo", "maximo", "máx", "massimo", "max_price", "plus_haut",
        "haut", "najwyzszy", "høj", "максимум", "макс", "最高", "最高价", "高値", "高い",
    ),
    "low": (
        "low", "l", "bid_low", "px_low", "low_price", "price_low", "min", "tief", "tiefst",
        "tiefstkurs", "tagestief", "mínimo", "minimo", "mín", "min_price", "plus_bas", "bas",
        "najnizszy", "lav", "минимум", "мин", "最低", "最低价", "安値", "安い",
    ),
    "close": (
        "close", "c", "bid_close", "px_last", "close_price", "closing_price", "price_close",
        "close_last", "last", "last_price", "price", "settle", "schluss", "schlusskurs",
        "schlußkurs", "zuletzt", "letzter", "kurs", "cierre", "último", "ultimo", "fechamento",
        "chiusura", "clôture", "cloture", "dernier", "zamkniecie", "luk", "закрытие", "цена", "收盘",
        "收盘价", "終値",
    ),
    "volume": (
        "tickvol", "tick_volume", "tick_qty", "px_volume", "volume", "vol", "v", "total_volume", "tottrdqty",
        "stücke", "stuecke", "stück", "stueck", "gehandelte_stücke", "volumen", "volumes", "umsatz",
        "wolumen", "volym", "объем", "объём", "成交量", "出来高", "base_volume", "real_volume",
        "volume_traded",
    ),
    "adjusted": ("adj_close", "adjusted_close", "close_adj", "close_adjusted", "adj_close_price"),
}  # fmt: skip
FINISHED = ("confirm", "complete", "is_closed", "is_final")  # 0 in the row of a bar that is not over
ROLE_OF = {alias: role for role, aliases in NAMES.items() for alias in aliases}
TIME_NAMES = frozenset(NAMES["time"])


def role_of(name: str) -> str | None:
    """What a column of this name is: `time`, `symbol` or a field of a bar; None for another one."""
    return ROLE_OF.get(plain_name(name))


def plain_name(name: str) -> str:
    """A name in lower case, its words joined by underscores."""
    return "_".join(name.lower().replace("-", " ").split())


def bare_name(name: str) -> str:
    """A name in lower case without brackets, numbering and punctuation."""
    words = "".join(sign if sign.isalnum() else " " for sign in name.lower()).split()
    return "_".join(words[1:] if len(words) > 1 and words[0].isdigit() else words)


def further_place(role: str, names: tuple[str, ...], taken: set[int]) -> int | None:
    """Position of the column that has a role of `FURTHER` and none yet; None where there is none."""
    bare = list(map(bare_name, names))
    joined = [name.replace("_", "") for name in bare]  # "adjClose" is "Adj Close"
    for alias in FURTHER[role]:
        word = alias.replace("_", "")
        places = [place for place, name in enumerate(joined) if name == word and place not in taken]
        if places:  # "t" before "T"
            return min(places, key=lambda place: names[place] != alias)
    of_unit = [name.startswith(("vol_", "volume_")) for name in bare]  # "Volume BTC"
    units = (place for place, is_volume in enumerate(of_unit) if role == "volume" and is_volume)
    return next((place for place in units if place not in taken), None)
