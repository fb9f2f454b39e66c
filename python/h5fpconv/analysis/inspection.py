"""What an inspection finds.

SPDX-License-Identifier: MIT
"""
import dataclasses
from collections.abc import Sequence

from h5fpconv.analysis.recommend import Budget, Recommendation
from h5fpconv.analysis.results import Result
from h5fpconv.analysis.survey import Survey
from h5fpconv.user.select import KEEP
from h5fpconv.user.targets import Target


@dataclasses.dataclass(frozen=True)
class Inspected:
    """One dataset or scaled group.

    `stored` is what it is in now, `kept` the result of leaving it so; `results` has those
    of the targets that it can become, `obstacles` the others with the reason.
    """

    names: Sequence[str]
    shape: tuple[int, ...]
    stored: str
    survey: Survey
    subnormals: int
    is_sampled: bool
    kept: Result
    results: dict[str, Result]
    obstacles: dict[str, str]
    recommendation: Recommendation | None

    @property
    def name(self) -> str:
        return self.names[0]

    def chosen(self) -> Result:
        """The result of what is recommended."""
        target = self.recommendation.target if self.recommendation else KEEP
        return self.results.get(target, self.kept)


@dataclasses.dataclass(frozen=True)
class Inspection:
    """A file.  `skipped` names datasets that hold no floating-point numbers, `mixed` is the
    result of all recommendations together."""

    path: str
    file_bytes: int
    policy: str
    rule: str | None
    budget: Budget | None
    sample: int | None
    targets: Sequence[Target]
    inspected: Sequence[Inspected]
    skipped: Sequence[str]
    whole: dict[str, Result]
    kept: Result
    recommendation: Recommendation | None
    mixed: Result
