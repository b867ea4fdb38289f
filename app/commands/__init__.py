"""What the commands of `threadmark` do. A command is loaded when it runs; `app/command_line.py` declares them all."""

from typing import TYPE_CHECKING

from threadmark.lazy import lazy_exports

if TYPE_CHECKING:
    from threadmark.app.commands.api_keys import create_key, list_keys, revoke_key
    from threadmark.app.commands.doctor import run_doctor
    from threadmark.app.commands.memory_index import run_reindex
    from threadmark.app.commands.merged_names import run_merged, run_split
    from threadmark.app.commands.migrate import run_migrate
    from threadmark.app.commands.serve import run_serve
    from threadmark.app.commands.verify import run_verify
    from threadmark.app.commands.worker import run_worker
else:
    __getattr__, __dir__ = lazy_exports(__name__, __file__)

__all__ = [
    "create_key",
    "list_keys",
    "revoke_key",
    "run_doctor",
    "run_merged",
    "run_migrate",
    "run_reindex",
    "run_serve",
    "run_split",
    "run_verify",
    "run_worker",
]
