"""What runs on the other side: standard library only, started with ``python -I -S``.

`start` reads what to run; `namespaces` and `confine` take away what the program must not have;
`supervise` runs it, watches it and leaves nothing behind. `solution` and `tester` are the two
programs that a code reward runs, with `values` as their language, in `messages`, and
`channel` as the tester's side of it.
"""
