"""longcode: a request for several Python functions that call each other, graded by running."""

from xpredflow.tasks.generated.longcode.answers import STYLES, write
from xpredflow.tasks.generated.minicode.draw import draw_long
from xpredflow.tasks.generated.minicode.task import MiniCode
from xpredflow.tasks.generated.splits import LONG_RESPONSE_LENGTH


class LongCode(MiniCode):
    """Filter, change and reduce lists, in three to five functions that call each other.

    Longer pipelines of minicode's kind; their number is at least that of the shorter ones.
    """

    name = "longcode"
    response_length = LONG_RESPONSE_LENGTH
    styles, write, pipelines = STYLES, staticmethod(write), staticmethod(draw_long)
