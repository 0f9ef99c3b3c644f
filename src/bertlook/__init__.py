"""bertlook: *What Does BERT Look At?* (Clark et al. 2019), rebuilt for any frozen encoder.

One stream of attention (:mod:`bertlook.attention`), many small measures (one module a section).
"""

from collections.abc import Callable

__version__ = "0.1.0"


class BertlookError(Exception):
    """A user's mistake, told in one line: where, what, and what to do about it.

    Anything else that is raised is our bug and may show its traceback.
    """


def complaint(call: Callable[..., object], *given: object, **named: object) -> str:
    """The line with which a call answers a user's mistake; if it finds none, that is the error."""
    try:
        call(*given, **named)
    except BertlookError as error:
        return str(error)
    raise AssertionError(f"{call.__qualname__} found no mistake in {given} {named}")
