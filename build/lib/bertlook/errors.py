"""The one exception for everything a user can cause."""


class BertlookError(Exception):
    """A user's mistake, told in one line: where, what, and what to do about it.

    Anything else that is raised is our bug and may show its traceback.
    """
