"""The refund story, played to somebody who watches: `python -m threadmark.examples.refund.demo`."""
