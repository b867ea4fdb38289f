"""Month names of the four European languages; the months of Chinese and Japanese are numbers."""

__all__ = ["MONTHS"]

_NAMES = (
    "january jan januar jänner janvier janv enero ene",
    "february feb februar février fevrier févr febrero",
    "march mar märz mär maerz mars marzo",
    "april apr avril avr abril abr",
    "may mai mayo",
    "june jun juni juin junio",
    "july jul juli juillet juil julio",
    "august aug août aout agosto ago",
    "september sep sept septembre septiembre setiembre",
    "october oct oktober okt octobre octubre",
    "november nov novembre noviembre",
    "december dec dezember dez décembre déc decembre diciembre dic",
)
MONTHS = {name: month for month, names in enumerate(_NAMES, start=1) for name in names.split()}
