"""The command that was given, for the reports that say how they were made."""

import shlex

import typer


def command(context: typer.Context) -> str:
    """`xpredflow NAME` with the arguments and options that the user wrote, in declared order."""
    words = ["xpredflow", context.info_name or ""]
    for parameter in context.command.params:
        name = parameter.name or ""
        value = context.params.get(name)
        source = context.get_parameter_source(name)
        # by its name: which module the enumeration lives in depends on the version of typer
        if source is None or source.name != "COMMANDLINE" or value is None:
            continue
        values = value if isinstance(value, list | tuple) else [value]
        flag = [] if parameter.param_type_name == "argument" else [parameter.opts[0]]
        if value is True:
            words += flag
        else:
            words += [word for one in values for word in (*flag, str(one))]
    return shlex.join(words)
