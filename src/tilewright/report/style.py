"""How the page looks: colours for light and dark, one column on a phone, tables that scroll.

Colours and charts have parts of their own, for charts that are files (`scripts/tuner_curves.py`).
"""

from __future__ import annotations

from typing import Final

__all__ = ["CHARTS", "PALETTE", "STYLE"]

PALETTE: Final = """
:root{color-scheme:light dark;--paper:#fff;--ink:#1b1f24;--quiet:#5b6470;--line:#dfe3e8;
--raised:#f5f7f9;--good:#13794a;--bad:#b3261e;--accent:#2458c5;
--s0:#2458c5;--s1:#c2570c;--s2:#13794a;--s3:#8a3ab9;--s4:#b3261e;--s5:#57606a;
--l0:#d6e4ff;--l1:#ffe3c9;--l2:#d3f0dc;--l3:#f0dcfa;--l4:#fbd9d6;--l5:#dff1f5;--l6:#f5efc4;
--l7:#e4e6ea}
@media(prefers-color-scheme:dark){:root{--paper:#14171b;--ink:#e6e9ed;--quiet:#9aa4b0;
--line:#2d333b;--raised:#1c2127;--good:#56c98d;--bad:#ff8a80;--accent:#82aaff;
--s0:#82aaff;--s1:#f5a25d;--s2:#56c98d;--s3:#cf9bf0;--s4:#ff8a80;--s5:#9aa4b0;
--l0:#22396b;--l1:#5f3917;--l2:#1d4a31;--l3:#4a2c60;--l4:#642b27;--l5:#1f4852;--l6:#504a17;
--l7:#3a4048}}
"""

CHARTS: Final = """
svg text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;
fill:var(--quiet)}
svg .end{text-anchor:end}svg .middle{text-anchor:middle}
svg .halo,svg .name{paint-order:stroke;stroke:var(--paper);stroke-width:5px}
svg .name{fill:var(--ink);font-weight:600}
.grid{stroke:var(--line)}.axis{stroke:var(--quiet)}
.draft{stroke:var(--quiet);stroke-dasharray:4 4}
.curve{fill:none;stroke-width:2.2;stroke-linejoin:round}
.s0{stroke:var(--s0)}.s1{stroke:var(--s1)}.s2{stroke:var(--s2)}.s3{stroke:var(--s3)}
.s4{stroke:var(--s4)}.s5{stroke:var(--s5)}
"""

_PAGE: Final = """
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif}
main{max-width:1080px;margin:0 auto;padding:28px 20px 60px}
h1{font-size:1.5rem;line-height:1.25;margin:0;overflow-wrap:anywhere}
h2{font-size:1.15rem;margin:44px 0 4px}
p{margin:4px 0 12px;max-width:46rem}
.quiet,.about{color:var(--quiet)}
.about{font-size:.93rem}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;
margin:20px 0 0;padding:0}
.card{background:var(--raised);border:1px solid var(--line);border-radius:10px;padding:12px 14px}
.card dt{color:var(--quiet);font-size:.82rem}
.card dd{margin:2px 0 0;font-size:1.3rem;font-weight:600;font-variant-numeric:tabular-nums}
.card dd small{display:block;font-size:.8rem;font-weight:400;color:var(--quiet)}
.good{color:var(--good)}.bad{color:var(--bad)}
svg{display:block;max-width:100%}
svg.narrow{display:none}
.dots{stroke:var(--quiet);stroke-width:2.6;stroke-linecap:round;opacity:.55;fill:none}
.failed{stroke:var(--bad);stroke-width:1.4;fill:none}
.roof{stroke:var(--quiet);stroke-width:1.4;fill:none}
.moved{stroke:var(--accent);stroke-width:1.4}
.before{fill:var(--paper);stroke:var(--accent);stroke-width:1.4}
.after{fill:var(--accent);fill-opacity:.8}
.legend{display:flex;flex-wrap:wrap;gap:4px 18px;margin:8px 0;padding:0;list-style:none;
font-size:.88rem;color:var(--quiet)}
.legend i{display:inline-block;width:14px;height:14px;border-radius:4px;vertical-align:-2px;
margin-right:6px;border:1px solid var(--line)}
.legend svg{display:inline-block;vertical-align:middle;margin-right:6px}
.scroll{overflow-x:auto;margin:10px 0;border:1px solid var(--line);border-radius:10px}
table{border-collapse:collapse;width:100%;font-size:.88rem;font-variant-numeric:tabular-nums}
th,td{padding:6px 10px;text-align:right;white-space:nowrap;border-top:1px solid var(--line)}
thead th{border-top:0;color:var(--quiet);font-weight:500;background:var(--raised)}
th.word,td.word{text-align:left}
th.text,td.text{text-align:left;white-space:normal;min-width:11rem;overflow-wrap:anywhere}
.tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(300px,1fr));gap:14px 18px;
margin:12px 0;padding:0;list-style:none}
.tiles li{min-width:0}
.tiles li>div{white-space:nowrap;overflow:hidden;text-overflow:ellipsis;font-size:.86rem}
.chain{position:relative;display:flex;margin:12px 0}
.chain .lanes{flex:none;max-width:none}
.edge{fill:none;stroke:var(--quiet);stroke-width:1.4}.far{stroke:var(--accent)}
.chain ol{list-style:none;margin:0;padding:0;flex:1;min-width:0}
.box{height:46px;margin:3px 0;padding:3px 10px;border:1px solid var(--line);border-radius:8px;
background:var(--raised);overflow:hidden;display:grid;font-size:.86rem;line-height:19px;
grid-template-columns:11.5rem minmax(0,1fr) 11rem 15rem;column-gap:12px}
.box>*{white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
.box .layout{grid-row:1/3;align-self:center;justify-self:start;max-width:100%;padding:1px 8px;
border-radius:6px;background:var(--l7)}
.box .shape,.box .facts,.box .label{color:var(--quiet)}
.box .facts{text-align:right}
.box .label{grid-column:2/5}
.view{border-style:dashed;background:none}
.convert{border-color:var(--bad)}.convert b{color:var(--bad)}
.box .l0,.legend .l0{background:var(--l0)}.box .l1,.legend .l1{background:var(--l1)}
.box .l2,.legend .l2{background:var(--l2)}.box .l3,.legend .l3{background:var(--l3)}
.box .l4,.legend .l4{background:var(--l4)}.box .l5,.legend .l5{background:var(--l5)}
.box .l6,.legend .l6{background:var(--l6)}.box .l7,.legend .l7{background:var(--l7)}
details{margin:10px 0}td details{margin:0}td details p{margin:2px 0 6px}
summary{cursor:pointer;color:var(--accent)}
code{font:.88em ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;overflow-wrap:anywhere}
footer{margin-top:48px;padding-top:12px;border-top:1px solid var(--line);color:var(--quiet);
font-size:.85rem}
@media(max-width:640px){main{padding:18px 14px 40px}svg.wide{display:none}
svg.narrow{display:block}.card{padding:9px 11px}.card dd{font-size:1.1rem}
.cards{grid-template-columns:1fr 1fr}
.tiles{grid-template-columns:minmax(0,1fr)}
.box{grid-template-columns:7.2rem minmax(0,1fr) auto;column-gap:8px;padding:3px 7px;
font-size:.8rem}.box .shape{display:none}.box b{grid-column:2/4}
.box .facts{grid-area:2/3}.box .label{grid-area:2/2}}
@media print{.scroll{overflow:visible}}
"""

STYLE: Final = PALETTE + CHARTS + _PAGE
