"""The one style of every page, and the policy that lets a browser use it and nothing else.

Colours are those of Okabe and Ito, which people with any kind of colour blindness tell apart.
"""

from base64 import b64encode
from hashlib import sha256

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #ffffff; --ink: #1c2024; --soft: #5b6470; --rule: #e3e6ea; --card: #f6f7f9;
  --c0: #0072b2; --c1: #d55e00; --c2: #009e73; --c3: #b4568a; --c4: #a97900; --c5: #3b8fc4;
  --weak: #8a929c; --count: #0072b2; --hint: #b07d00; --proven: #d55e00; --band: #cfd5dc;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #16191d; --ink: #e6e9ec; --soft: #a3abb5; --rule: #2c3138; --card: #1e2228;
    --c0: #56b4e9; --c1: #f08a3c; --c2: #2fc79a; --c3: #dd8fba; --c4: #e6b33c; --c5: #9ad0f0;
    --weak: #8a929c; --count: #56b4e9; --hint: #e6b33c; --proven: #f08a3c; --band: #454d57;
  }
}
body { margin: 0 auto; max-width: 66rem; padding: 1.5rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; }
h2 { font-size: 1.15rem; margin: 2.25rem 0 .5rem; padding-top: .75rem; border-top: 1px solid var(--rule); }
p { margin: .4rem 0; max-width: 46rem; }
nav { color: var(--soft); margin-bottom: 1rem; }
nav a { margin-right: 1rem; }
a { color: var(--c0); }
.soft { color: var(--soft); }
.verdict { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1rem 0; padding: 0; }
.verdict div { background: var(--card); border-left: 4px solid var(--weak); padding: .5rem .9rem; }
.verdict div.policy_adjust, .verdict div.replan { border-color: var(--proven); }
.verdict div.research_experiment { border-color: var(--count); }
.verdict dt { color: var(--soft); font-size: .8rem; }
.verdict dd { margin: 0; font-size: 1.1rem; font-weight: 600; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: .5rem 0; font-size: .88rem; }
th, td { padding: .25rem .7rem .25rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--rule); overflow-wrap: break-word; }
th { color: var(--soft); font-weight: 600; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.reason { min-width: 18rem; }
caption { text-align: left; color: var(--soft); }
details { margin: .5rem 0; }
summary { cursor: pointer; color: var(--soft); }
.told { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--card); padding: .75rem 1rem;
  font-size: .88rem; max-width: none; }
blockquote { margin: .4rem 0; padding: .2rem .9rem; border-left: 3px solid var(--rule);
  overflow-wrap: anywhere; white-space: pre-wrap; }
code { font-size: .85em; overflow-wrap: anywhere; }
svg { display: block; width: 100%; height: auto; margin: .5rem 0;
  font-family: system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; }
svg text { fill: var(--ink); font-size: 12px; }
svg .tick { fill: var(--soft); font-size: 11px; }
svg .head { fill: var(--soft); font-size: 12px; font-weight: 600; }
svg .figure { font-variant-numeric: tabular-nums; font-size: 11.5px; }
svg .name { fill: var(--soft); }
svg .whole { fill: var(--ink); font-weight: 600; }
svg .grid, svg .rule { stroke: var(--rule); }
svg .reference { stroke: var(--ink); stroke-width: 1.5; stroke-dasharray: 5 3; }
svg .interval { stroke-width: 2; }
svg .leader { stroke-width: 1; stroke-opacity: .45; }
svg .series { fill: none; stroke-width: 2; stroke-linejoin: round; }
svg .span { stroke-width: 2; }
svg .band { fill: var(--band); }
svg .mark { stroke: var(--paper); stroke-width: 1; }
svg .ring { fill: var(--paper); stroke-width: 2; }
svg .insufficient_sample { stroke: var(--weak); } svg .insufficient_sample.arrow { fill: var(--weak); }
svg .interval.insufficient_sample { stroke-opacity: .55; } svg .arrow.insufficient_sample { opacity: .55; }
svg .interval.count_only { stroke: var(--count); }
svg .mark.count_only, svg .arrow.count_only { fill: var(--count); }
svg .interval.suggestive { stroke: var(--hint); }
svg .mark.suggestive, svg .arrow.suggestive { fill: var(--hint); }
svg .interval.significant { stroke: var(--proven); }
svg .mark.significant, svg .arrow.significant { fill: var(--proven); }
svg .mark.fine { fill: var(--count); } svg .span.fine { stroke: var(--count); }
svg .mark.missed { fill: var(--proven); } svg .span.missed { stroke: var(--proven); }
""" + "".join(
    f"svg .series.s{k}, svg .leader.s{k}, svg .ring.s{k} {{ stroke: var(--c{k}); }} "
    f"svg .mark.s{k}:not(.ring) {{ fill: var(--c{k}); }}\n"
    for k in range(6)
)

# Nothing is loaded, run, framed or sent: the style, named by its hash, is all that the page may use.
POLICY = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; "
    f"style-src 'sha256-{b64encode(sha256(STYLE.encode()).digest()).decode()}'"
)
