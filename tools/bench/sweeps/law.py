"""Throughput surface of a grid, fitted to the cells so far: a law of saturation, and a Gaussian process.

The interpolation of `bezel.bench.sweep.surface` is judged beside it (docs/sweeps.md). Owns the fit: values and
uncertainty of every cell, in logarithms, and the choice of the next cell.

The model, for a context `c` and `u` users:

    ln X(c, u) = -ln((r u)^-p + P^-p) / p  -  d softplus(ln u - ln(P / r))  +  g(c, u)

`r(c)` is the throughput of a single user, `P(c)` the plateau, `p(c)` the sharpness of the transition between them,
`d(c)` the rate of decline beyond. Their logarithms (and d) are Gaussian processes over `ln(c + c0)`: flat where a fixed
time of a request dominates, smooth where the context does. `g` is a Gaussian process over both axes for deviations from
the law. Noise is Student's t: one bad cell does not bend the surface. Everything is linearised around the most likely
parameters (Gauss-Newton), so the law's own uncertainty is part of every interval; the few scales of the processes
maximise the marginal likelihood times a wide prior.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bezel.bench.sweep.grid import Grid, Place
from bezel.bench.sweep.next_cell import Known, beyond

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Indices = np.ndarray[tuple[int, ...], np.dtype[np.intp]]
_Places = tuple[Array, Indices, Indices]  # slopes of the law, rows, columns

_R, _P, _SHARP, _FALL = range(4)
# Prior of the law's four functions: spread of the level; of the last two's variation with the context (not fitted).
_LEVEL_SPREAD = (2.0, 2.0, 0.5, 0.2)
_VARIATION = (0.2, 0.15)
_SHARP_MEAN = np.log(1.6)
_FREEDOM = 4.0  # of Student's t: one measurement in fifty lies beyond three standard deviations
_STEPS, _STILL = 12, 3e-3
# Scales that are fitted: ln of the variation of r and P, length over ln(c + c0), c0, residual, noise.
_SCALES_MEAN = np.array([np.log(0.7), np.log(0.7), np.log(3.0), np.log(100.0), np.log(0.08), np.log(0.05)])
_SCALES_SPREAD = np.array([0.7, 0.7, 0.5, 1.0, 0.7, 0.5])
_SCALES_LEAST = np.array([np.log(0.02), np.log(0.02), np.log(0.7), np.log(4.0), np.log(0.005), np.log(0.008)])


@dataclass(frozen=True)
class Constants:
    """Constants that no sweep fits: chosen by the errors on many grids, judged by those on others (docs/sweeps.md).

    Attributes:
        users_length: Length of the residual process, in ln(users).
        cost_power: The next cell reduces the variance most per requests to this power.
    """

    users_length: float
    cost_power: float


@dataclass(frozen=True)
class Fit:
    """Fit of every cell of a grid; rows are contexts, columns users.

    Attributes:
        mean: ln of the value.
        spread: Standard deviation of `mean` as an estimate of the true value: the relative error.
        noise: Standard deviation of one measurement around the true value, in ln.
        covariance: Of all cells' true values with each other, in the order of `mean.ravel()`.
    """

    mean: Array
    spread: Array
    noise: float
    covariance: Array


def most_telling(
    grid: Grid, fit: Fit, known: Known, affordable: Collection[Place], constants: Constants
) -> Place | None:
    """Return the cell whose measurement reduces the variance of all unmeasured ones most for its requests."""
    candidates = sorted(affordable)
    if not candidates:
        return None
    width, left = len(grid.users), beyond(known)
    targets = [
        row * width + column
        for row, column in sorted(known.askable)
        if (row, column) not in known.asked and (row, column) not in left
    ]
    at = [row * width + column for row, column in candidates]
    shared = fit.covariance[np.ix_(targets, at)]
    gained = np.sum(shared**2, axis=0) / (np.diag(fit.covariance)[at] + fit.noise**2)
    cost = np.array([grid.requests(place) for place in candidates]) ** constants.cost_power
    return candidates[int(np.argmax(gained / cost))]


def fit(
    contexts: Sequence[int],
    users: Sequence[int],
    values: Mapping[tuple[int, int], float],
    constants: Constants,
    scales: Array | None = None,
) -> tuple[Fit, Array]:
    """Fit the surface to measured values.

    Args:
        contexts: Tokens, rising.
        users: Rising.
        values: By row and column; each above 0; at least one.
        constants: What is not fitted.
        scales: Scales of an earlier fit of the same grid: the start of the search for the best ones.

    Returns:
        The surface, and the scales for the next time.
    """
    problem = _Problem(contexts, users, values, constants)
    found = problem.best_scales(_SCALES_MEAN if scales is None else scales)
    return problem.surface(found), found


class _Problem:
    """The measured values, with everything that stays constant while scales are tried."""

    def __init__(
        self,
        contexts: Sequence[int],
        users: Sequence[int],
        values: Mapping[tuple[int, int], float],
        constants: Constants,
    ) -> None:
        self.constants = constants
        self.contexts = np.asarray(contexts, float)
        self.log_users = np.log(np.asarray(users, float))
        places = sorted(values)
        self.measured = np.array([row for row, _ in places]), np.array([column for _, column in places])
        self.everywhere = np.divmod(np.arange(len(contexts) * len(users)), len(users))
        self.y = np.log(np.array([values[place] for place in places]))
        alone = self.y - self.log_users[self.measured[1]]
        means = np.array([float(np.max(alone)), float(np.max(self.y)) + 0.3, _SHARP_MEAN, 0.0])
        self.start = np.repeat(means[:, None], len(contexts), axis=1)
        self.parameters = self.start.copy()  # where the next solution begins

    def best_scales(self, start: Array) -> Array:
        """Search for the best scales: each in turn up and down, with smaller steps where neither is better."""
        best: Array = np.maximum(start, _SCALES_LEAST)
        score = self._score(best)
        steps = np.full(len(best), 0.6)
        for _ in range(6):
            for index in range(len(best)):
                for sign in (1.0, -1.0):
                    tried = best.copy()
                    tried[index] = max(tried[index] + sign * steps[index], _SCALES_LEAST[index])
                    if (found := self._score(tried)) > score + 1e-2:
                        best, score = tried, found
                        break
                else:
                    steps[index] /= 2
            if np.all(steps < 0.2):
                break
        return best

    def _score(self, scales: Array) -> float:
        prior = float(np.sum(((scales - _SCALES_MEAN) / _SCALES_SPREAD) ** 2))
        return self._solve(scales).likelihood - prior / 2

    def surface(self, scales: Array) -> Fit:
        """Return the fit with these scales."""
        solved = self._solve(scales)
        rows, columns = self.everywhere
        law, slopes = _law(solved.parameters, rows, self.log_users[columns])
        here = slopes, rows, columns
        across = self._covariance(scales, solved.priors, here, solved.here)
        gain = np.linalg.solve(solved.whole, across.T).T
        mean = law + np.sum(slopes * (self.start - solved.parameters)[:, rows], axis=0) + gain @ solved.error
        covariance = self._covariance(scales, solved.priors, here, here) - gain @ across.T
        shape = (len(self.contexts), len(self.log_users))
        spread = np.sqrt(np.maximum(np.diag(covariance), 1e-12))
        return Fit(mean.reshape(shape), spread.reshape(shape), float(np.exp(scales[5])), covariance)

    def _solve(self, scales: Array) -> "_Solved":
        noise = float(np.exp(2 * scales[5]))
        priors = self._priors(scales)
        rows, columns = self.measured
        parameters, weights = self.parameters, np.ones(len(self.y))
        for step in range(_STEPS):
            law, slopes = _law(parameters, rows, self.log_users[columns])
            here = slopes, rows, columns
            error = self.y - law + np.sum(slopes * (parameters - self.start)[:, rows], axis=0)
            signal = self._covariance(scales, priors, here, here)
            whole = signal + np.diag(noise / weights)
            solved = np.linalg.solve(whole, error)
            if step == _STEPS - 1:
                break
            move = self.start + np.einsum("krj,kj->kr", priors[:, :, rows], slopes * solved) - parameters
            left = error - signal @ solved
            before, weights = weights, (_FREEDOM + 1) / (_FREEDOM + left**2 / noise)
            parameters = parameters + np.clip(move, -1.0, 1.0)
            if np.max(np.abs(move)) < _STILL and np.max(np.abs(before - weights)) < _STILL:
                break
        self.parameters = parameters
        _, size = np.linalg.slogdet(whole)
        likelihood = -0.5 * (float(error @ solved) + float(size)) - float(np.sum(_t_penalty(weights)))
        return _Solved(parameters, priors, here, error, whole, likelihood)

    def _priors(self, scales: Array) -> Array:
        """Return the covariances of the four functions' values over the contexts."""
        place = np.log(self.contexts + np.exp(scales[3]))
        shape = _matern(np.abs(place[:, None] - place[None, :]) / np.exp(scales[2]))
        variations = [np.exp(scales[0]), np.exp(scales[1]), *_VARIATION]
        return np.stack([level**2 + part**2 * shape for level, part in zip(_LEVEL_SPREAD, variations, strict=True)])

    def _covariance(self, scales: Array, priors: Array, one: _Places, other: _Places) -> Array:
        """Return the prior covariance of the values at one set of places with those at another."""
        (slopes, rows, columns), (slopes_2, rows_2, columns_2) = one, other
        law = np.einsum("ki,kij,kj->ij", slopes, priors[:, rows[:, None], rows_2[None, :]], slopes_2)
        place = np.log(self.contexts + np.exp(scales[3])) / np.exp(scales[2])
        by_context = np.abs(place[rows][:, None] - place[rows_2][None, :])
        by_users = (
            np.abs(self.log_users[columns][:, None] - self.log_users[columns_2][None, :]) / self.constants.users_length
        )
        covariance: Array = law + np.exp(2 * scales[4]) * _matern(by_context) * _matern(by_users)
        return covariance


@dataclass(frozen=True)
class _Solved:
    parameters: Array
    priors: Array
    here: _Places
    error: Array
    whole: Array
    likelihood: float


def _law(parameters: Array, rows: Array, log_users: Array) -> tuple[Array, Array]:
    """Return the law's logarithm at each place, and its slopes in the four functions there."""
    alone, plateau = parameters[_R][rows] + log_users, parameters[_P][rows]
    sharp, fall = np.exp(np.clip(parameters[_SHARP][rows], -1.0, 3.0)), parameters[_FALL][rows]
    total = np.logaddexp(-sharp * alone, -sharp * plateau)
    share = np.exp(-sharp * alone - total)
    beyond = np.logaddexp(0.0, alone - plateau)
    turn = fall * np.exp(alone - plateau - beyond)
    slopes = [share - turn, 1 - share + turn, total / sharp + alone * share + plateau * (1 - share), -beyond]
    return -total / sharp - fall * beyond, np.stack(slopes)


def _matern(distance: Array) -> Array:
    """Return the covariance of a twice differentiable process, by distance in lengths."""
    scaled = np.sqrt(5.0) * distance
    shape: Array = (1 + scaled + scaled**2 / 3) * np.exp(-scaled)
    return shape


def _t_penalty(weights: Array) -> Array:
    """Return the cost of a weight, with which the normal density at its best weight equals Student's t."""
    cost: Array = 0.5 * _FREEDOM * (weights - 1 - np.log(weights))
    return cost
