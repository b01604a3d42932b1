"""What people do to a library as a whole: look back, undo, review, forget, check. Over the store's public
functions; the store imports none of it, and calls the hooks that are registered here."""

from infinimem.store.files import Files
from infinimem.store.hooks import HOOKS, Hook, Locked


class _Forget(Hook):
    """A `forget` that was cut short is finished by whoever opens the library next."""

    def unfinished(self, files: Files) -> bool:
        from infinimem.operations.forget import purge

        return purge.waiting(files)

    def finish(self, files: Files) -> None:
        from infinimem.operations.forget import purge

        purge.finish(files)


class _Git(Hook):
    """`git = true`: each receipt is a commit."""

    def before(self, library: Locked, op: str) -> None:
        if library.settings.git and op != "forget":
            from infinimem.operations.git import commits

            commits.before(library)

    def after(self, library: Locked) -> None:
        if library.settings.git:
            from infinimem.operations.git import commits

            commits.after(library)


HOOKS += (_Forget(), _Git())
