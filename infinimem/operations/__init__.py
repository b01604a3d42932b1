"""What people do to a library as a whole: look back, undo, review, forget, check. Over the store's public
functions; the store imports none of it, and calls the hooks that are registered here."""

from infinimem.operations.forget import BEGUN
from infinimem.store.files import Files
from infinimem.store.hooks import HOOKS, Hook, Locked


class _Forget(Hook):
    """A `forget` that was cut short is finished by whoever opens the library next."""

    def unfinished(self, files: Files) -> bool:
        return files.exists(BEGUN)

    def finish(self, files: Files) -> None:
        if self.unfinished(files):
            from infinimem.operations.forget import machine_state

            machine_state.finish(files)


class _Git(Hook):
    """`git = true`: each receipt is a commit.

    What was said and written since is committed first, so that a receipt's own commit shows what it did
    alone; not before a `forget`, which would put into history what is to be forgotten.
    """

    def before(self, library: Locked, op: str) -> None:
        if library.settings.git and op != "forget":
            from infinimem.operations.git import commits

            commits.keep(library)

    def after(self, library: Locked) -> None:
        if library.settings.git:
            from infinimem.operations.git import commits

            commits.keep(library, unless_known=True)


HOOKS += (_Forget(), _Git())
