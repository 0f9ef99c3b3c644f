"""bertlook: *What Does BERT Look At?* (Clark et al. 2019), rebuilt for any frozen encoder.

One stream of attention (:mod:`bertlook.attention`), many small measures (one module a section).
"""

__version__ = "0.1.0"


class BertlookError(Exception):
    """A user's mistake, told in one line: where, what, and what to do about it.

    Anything else that is raised is our bug and may show its traceback.
    """
