"""Process replay: what the compiler makes of a corpus, before and after a change.

Tensor programs (`programs`) and small models (`models`) are compiled up to the text of LLVM for
several targets, and every stage is recorded by its hash (`recording`, `folder`). Two recordings are
compared stage by stage (`compare`); one of them may be that of another commit (`against`). A
refactoring changes nothing; a change of a recipe changes what it says it does.
"""
