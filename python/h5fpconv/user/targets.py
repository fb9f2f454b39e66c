"""What a dataset can be converted to, by name.

SPDX-License-Identifier: MIT

A target is a format ("bf16"), a format packed by HDF5's n-bit filter
("e2m1_packed"), or a scaled scheme ("mxfp4").
"""
import argparse
import dataclasses
import enum

import fpconv

from h5fpconv.user.status import UsageError

PACKED_SUFFIX = "_packed"
SCALE_RULES = ("floor", "ceil", "amax")


class Storage(enum.Enum):
    """How a target's values lie in a file."""

    PLAIN = "a dataset"
    PACKED = "a dataset with the n-bit filter"
    SCALED = "a group of codes and scales"


@dataclasses.dataclass(frozen=True)
class Target:
    """One target: `format` is that of the values or, with scales, of the elements."""

    name: str
    storage: Storage
    format: str
    scheme: fpconv.Scheme | None = None


def is_packable(name: str) -> bool:
    """Whether a value of the format leaves bits of its byte unused."""
    return fpconv.format_info(name).bits < 8


PACKED_NAMES: tuple[str, ...] = tuple(f + PACKED_SUFFIX for f in fpconv.FORMATS if is_packable(f))
TARGET_NAMES: tuple[str, ...] = (*fpconv.FORMATS, *PACKED_NAMES, *fpconv.SCHEMES)


def find_target(name: str, rule: str | None = None) -> Target:
    """The target of a name; `rule` replaces the rule by which a scheme chooses scales.

    Raises UsageError for an unknown name, or a rule that the scheme does not have.
    """
    if rule is not None and (name in fpconv.FORMATS or name in PACKED_NAMES):
        raise UsageError(f"{name} has no scales, to be chosen by {rule}")
    if name in fpconv.FORMATS:
        return Target(name, Storage.PLAIN, name)
    if name in PACKED_NAMES:
        return Target(name, Storage.PACKED, name.removesuffix(PACKED_SUFFIX))
    if name not in fpconv.SCHEMES:
        raise UsageError(f"there is no target {name!r}; choose from {', '.join(TARGET_NAMES)}")
    scheme = fpconv.scheme(name)
    if rule is not None and rule != scheme.rule:
        if scheme.scaling != "mx":
            raise UsageError(f"{name} always chooses scales by {scheme.rule}, not by {rule}")
        if rule == "amax":
            raise UsageError(f"{name} chooses scales by floor or ceil, not by amax")
        scheme = dataclasses.replace(scheme, rule=rule)
    return Target(name, Storage.SCALED, scheme.element, scheme)


def add_target_arguments(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """--to, --scale and --policy."""
    group = parser.add_argument_group("conversion")
    group.add_argument("--to", metavar="TARGET", required=required, choices=TARGET_NAMES,
                       help=f"a format ({', '.join(fpconv.FORMATS)}), one packed by HDF5's n-bit "
                            f"filter ({', '.join(PACKED_NAMES)}), or a scaled scheme "
                            f"({', '.join(fpconv.SCHEMES)})")
    group.add_argument("--scale", metavar="RULE", choices=SCALE_RULES,
                       help="how an MX scheme chooses its scales: floor (MX 1.0; default) may "
                            "saturate the largest value of a block, ceil never does")
    add_policy_argument(group)


def add_policy_argument(group: "argparse._ArgumentGroup") -> None:
    """--policy."""
    group.add_argument("--policy", choices=fpconv.POLICIES, default="ocp",
                       help="rounding, overflow and NaN of formats without scales (default: "
                            "%(default)s: ties to even, overflow as the OCP formats say)")
