"""The code inside the sandbox: standard library only, started with ``python -I -S``.

`start` reads what to run. `namespaces` and `confine` take away what the program must not have.
`supervise` runs the program, watches it and leaves nothing behind. `solution` and `tester` are the
two programs of a code reward: they exchange `values` in `messages`, and `channel` is the tester's
side of that.
"""
