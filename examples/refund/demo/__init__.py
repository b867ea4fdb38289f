"""The refund story, played to somebody who watches: `python -m examples.refund.demo`."""
