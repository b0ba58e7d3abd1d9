"""Style sheets: of the page (light and dark, narrow and on paper), and of a standalone picture."""

from bezel.bench.report.charts.palette import DARK, LIGHT, SERIES

_DASHES = ("none", "7 4", "2 3", "9 3 2 3", "4 2")
SANS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', 'Liberation Sans', Arial, sans-serif"


def _shapes(colours: dict[str, str]) -> str:
    series = "".join(
        f".l.s{place},.w.s{place}{{stroke:{colours[f's{place}']}}}.l.s{place}{{stroke-dasharray:{_DASHES[place]}}}"
        f".x.s{place}{{stroke:{colours[f's{place}']}}}.m.s{place}{{fill:{colours[f's{place}']};stroke:{colours['ground']}}}"
        f".m.hollow.s{place}{{fill:{colours['ground']};stroke:{colours[f's{place}']};stroke-width:2}}"
        for place in range(SERIES)
    )
    return (
        f".t{{font-size:12px;fill:{colours['ink']}}}.soft{{fill:{colours['soft']}}}.b{{font-weight:600}}"
        f".v{{font-size:12px;text-anchor:middle}}"
        f".halo{{paint-order:stroke;stroke:{colours['ground']};stroke-width:4px;stroke-linejoin:round}}"
        f".grid{{stroke:{colours['rule']};stroke-width:1;fill:none}}.axis{{stroke:{colours['soft']};fill:none}}"
        f".l{{fill:none;stroke-width:2;stroke-linejoin:round}}.x{{fill:none;stroke-width:2}}.w{{fill:none;stroke-width:1.4;opacity:.75}}"
        f".m{{stroke-width:1.2}}.ring{{fill:none;stroke:{colours['ink']};stroke-width:1.8}}"
        f".none{{fill:{colours['panel']};stroke:{colours['rule']};stroke-width:1}}"
        f".stroke{{fill:none;stroke:{colours['soft']};stroke-width:1.3;stroke-dasharray:3 2}}"
        f".stroke.bad{{stroke:{colours['bad']};stroke-width:2;stroke-dasharray:none}}"
        f".hatch{{fill:none;stroke-width:1;opacity:.38}}{series}"
    )


def alone(families: str) -> str:
    """Return the style of a standalone picture, on a light ground."""
    return f"text{{font-family:{families}}}{_shapes(LIGHT)}"


_PAGE = """
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%;scroll-behavior:smooth}
body{margin:0;background:var(--ground);color:var(--ink);font:15px/1.5 FAMILIES;font-variant-numeric:tabular-nums}
svg text{font-family:FAMILIES}
header,main,footer{max-width:1180px;margin:0 auto;padding:0 20px}
header{padding-top:24px}
h1{font-size:26px;line-height:1.25;margin:0 0 6px;overflow-wrap:anywhere}
h2{font-size:19px;margin:36px 0 10px;padding-top:10px;border-top:2px solid var(--rule)}
h3{font-size:15.5px;margin:22px 0 8px;overflow-wrap:anywhere}
p{margin:6px 0}
a{color:var(--link)}
nav ul{list-style:none;margin:12px 0;padding:0;display:flex;flex-wrap:wrap;gap:4px 18px}
.skip{position:absolute;left:-999px}
.skip:focus{left:8px;top:8px;background:var(--ground);padding:6px}
:focus-visible{outline:3px solid var(--link);outline-offset:2px}
.about{color:var(--soft);overflow-wrap:anywhere}
.warn{border:2px solid var(--bad);border-left-width:8px;border-radius:4px;padding:8px 14px;margin:10px 0;
 overflow-wrap:anywhere}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(128px,1fr));gap:10px;margin:14px 0;padding:0}
.tiles div{background:var(--panel);border-radius:6px;padding:8px 12px}
.tiles dt{font-size:12.5px;color:var(--soft);overflow-wrap:anywhere}
.tiles dd{margin:0;font-size:20px;font-weight:600;line-height:1.3;overflow-wrap:anywhere}
.tiles dd small{font-size:12.5px;font-weight:400;color:var(--soft)}
.figures{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:20px}
figure h3{margin-top:0}
figure{margin:0;padding:14px;border:1px solid var(--rule);border-radius:8px;min-width:0;break-inside:avoid}
figure.broad{grid-column:1/-1}
figcaption{font-size:13.5px;color:var(--soft);overflow-wrap:anywhere}
figcaption b{color:var(--ink)}
.draw{overflow-x:auto}
.draw svg{display:block;height:auto}
.draw svg.wide{width:100%}
.draw svg.narrow{display:none}
.kind{display:inline-block;border:1px solid var(--soft);border-radius:10px;padding:0 9px;font-size:12.5px;
 font-weight:600;margin-left:6px;color:var(--ink)}
details{margin-top:8px;font-size:14px}
summary{cursor:pointer;color:var(--link);padding:4px 0}
.scroll{overflow-x:auto;margin:6px 0}
table{border-collapse:collapse;font-size:13.5px;line-height:1.4}
caption{text-align:left;color:var(--soft);padding:2px 0 6px;font-size:13px}
th,td{padding:4px 10px 4px 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--rule)}
th{font-weight:600}
thead th{vertical-align:bottom;border-bottom:2px solid var(--soft)}
td.n{text-align:right;white-space:nowrap}
td{max-width:34em;overflow-wrap:break-word}
table.pairs td{overflow-wrap:anywhere;max-width:none}
.failed{color:var(--bad);font-weight:600}
footer{color:var(--soft);font-size:13px;padding:28px 20px 40px}
@media (max-width:820px){.figures{grid-template-columns:minmax(0,1fr)}}
@media (max-width:560px){
 header,main,footer{padding-left:12px;padding-right:12px}
 figure{padding:10px 8px}h1{font-size:22px}
 .draw svg.wide{display:none}.draw svg.narrow{display:block}
 .tiles{grid-template-columns:1fr 1fr}.tiles dd{font-size:17px}
}
@media print{
 @page{margin:13mm}
 body{font-size:10.5pt}header,main,footer{max-width:none;padding:0}
 nav,.skip,figure details{display:none}
 .figures{grid-template-columns:minmax(0,1fr) minmax(0,1fr);gap:12px}
 .draw svg.wide{display:none}.draw svg.narrow{display:block;max-width:100%}
 figcaption{font-size:9pt}h3{font-size:11pt}.tiles{grid-template-columns:repeat(4,1fr)}.tiles dd{font-size:13pt}
 h2{break-after:avoid}.scroll,.draw{overflow:visible}tr{break-inside:avoid}
 table{font-size:8pt}th,td{padding-right:6px;overflow-wrap:break-word}td.n{white-space:normal}
 *{print-color-adjust:exact;-webkit-print-color-adjust:exact}
}
"""


def page() -> str:
    """Return the style of the page. On paper it is light whatever the reader's device prefers."""
    light = "".join(f"--{name}:{colour};" for name, colour in LIGHT.items())
    dark = "".join(f"--{name}:{colour};" for name, colour in DARK.items())
    named = {name: f"var(--{name})" for name in LIGHT}
    return (
        f":root{{color-scheme:light dark;{light}}}"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}"
        f"{_shapes(named)}{_PAGE.replace('FAMILIES', SANS)}"
    )
