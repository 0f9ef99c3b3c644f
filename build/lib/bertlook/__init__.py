"""bertlook: *What Does BERT Look At?* (Clark et al. 2019), rebuilt for any frozen encoder.

One stream of attention (:mod:`bertlook.attention`), many small measures (one module a section).
"""

__version__ = "0.1.0"
