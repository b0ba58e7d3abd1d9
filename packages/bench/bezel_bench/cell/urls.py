"""Figures of each address of a load that is sent to several: of the requests that its processes sent.

Owns which requests belong to an address. Leaves out the figures themselves (`bezel_bench.metrics.definitions`).
"""

from dataclasses import replace

import numpy as np

from bezel_bench.load.plan import Load
from bezel_bench.metrics.definitions import distributions, measure
from bezel_bench.metrics.metric_inputs import MetricInputs
from bezel_bench.result.document import UrlFigures


def url_figures(load: Load, inputs: MetricInputs) -> list[UrlFigures]:
    """Return the figures of each address, in the order of the options; [] where there is one."""
    urls = load.urls
    figures = []
    for url in dict.fromkeys(urls) if len(urls) > 1 else ():
        places = [place for place, each in enumerate(urls) if each == url]
        rows = inputs.columns.where(np.isin(inputs.columns["worker"] % len(urls), places))
        # Counters are of one address, and the price of all.
        of_url = replace(inputs, columns=rows, gained=None, usd_per_hour=None)
        share = len(places) / len(urls)
        figures.append(
            UrlFigures(
                url=url,
                share=share,
                requests=len(rows),
                failed=int((rows.failure > 0).sum()),
                cancelled=int(rows.cancellations().sum()),
                metrics=measure(of_url),
                distributions=distributions(of_url),
            )
        )
    return figures
