"""Requests for functions as people write them: many sentences, names and courtesies."""

from dataclasses import replace
from random import Random

from xpredflow.tasks.generated.minicode.operations import NUMBERS, Atom, Result
from xpredflow.tasks.generated.minicode.pipeline import Pipeline, Step
from xpredflow.tasks.generated.people import (
    NUMBER_ARGUMENTS,
    WORD_ARGUMENTS,
    Pool,
    address,
    draw_argument,
    draw_function,
    draw_joint,
    put_aside,
)

# Other words for an operation, by the grammar's; the grammar's own is used too.
OPERATIONS: dict[str, tuple[str, ...]] = {
    "even": ("an even number",),
    "odd": ("an odd number",),
    "positive": ("over zero", "greater than zero"),
    "negative": ("under zero", "less than zero"),
    "above {k}": ("greater than {k}", "bigger than {k}", "over {k}", "more than {k}"),
    "below {k}": ("less than {k}", "smaller than {k}", "under {k}"),
    "other than {k}": ("not {k}", "different from {k}", "not equal to {k}"),
    "divisible by {k}": ("a multiple of {k}",),
    "square": ("square it", "multiply it by itself"),
    "negate": ("negate it", "flip the sign"),
    "take the absolute value": ("make it absolute",),
    "add {k}": ("increase by {k}", "plus {k}"),
    "subtract {k}": ("decrease by {k}", "take away {k}", "minus {k}"),
    "multiply by {k}": ("times {k}", "multiply it by {k}"),
    "longer than {k}": ("with more than {k} letters",),
    "shorter than {k}": ("with less than {k} letters",),
    "starting with {k}": ("beginning with {k}", "with {k} at the start"),
    "ending with {k}": ("ending in {k}", "with {k} at the end"),
    "containing {k}": ("with {k} in it",),
    "without {k}": ("with no {k} in it",),
    "uppercase": ("make it uppercase", "upper case"),
    "reverse": ("reverse it", "turn it around"),
    "repeat": ("repeat it", "write it twice"),
    "drop the first letter": ("remove the first letter", "cut off the first letter"),
    "drop the last letter": ("remove the last letter", "cut off the last letter"),
    "append {k}": ("add {k} at the end", "put {k} at the end"),
    "prepend {k}": ("add {k} in front", "put {k} in front"),
}
RESULTS: dict[str, tuple[str, ...]] = {
    "the list": ("a list", "them as a list"),
    "the sorted list": ("a sorted list", "them sorted"),
    "the reversed list": ("a reversed list", "them in reverse order"),
    "the count": ("how many there are", "the number of them"),
    "the sum": ("the total", "their sum"),
    "the largest or 0": ("the maximum or 0", "the biggest or 0"),
    "the smallest or 0": ("the minimum or 0", "the lowest or 0"),
    "the joined text": ("them joined", "one joined text"),
}
KEEP = Pool(
    (
        "keep if {p}",
        "drop unless {p}",
        "only keep it if {p}",
        "skip it unless {p}",
        "keep it when {p}",
        "ignore it unless {p}",
        "drop it if not {p}",
        "keep if it is {p}",
        "leave it out unless {p}",
        "take it if {p}",
        "remove it unless {p}",
        "let it pass if {p}",
        "it stays if {p}",
        "throw it away unless {p}",
        "keep those {p}",
        "it must be {p}",
        "check that it is {p}",
        "pass over it if not {p}",
        "need it {p}",
    ),
    ("only keep when {p}", "skip unless {p}", "keep it only if {p}"),
)
CHANGE_IF = Pool(
    (
        *("if {p} {c}", "{c} if {p}", "when {p} {c}", "{c} when {p}", "if it is {p} {c}"),
        *("{c} in case it is {p}", "in case of {p} {c}", "whenever {p} {c}", "{c} but only if {p}"),
        *("{c} whenever it is {p}", "only if {p} {c}", "should it be {p} {c}", "is it {p} {c}"),
    ),
    ("{c} if it is {p}", "{c} only when {p}", "when it is {p} {c}"),
)
JOINTS = Pool(
    (
        *(", ", ", then ", "; ", ", and then ", ", next ", "; then ", ", and next ", " then "),
        *(", afterwards ", "; next ", ", after this ", ", later ", "; also ", ", also ", " - "),
        *("; and ", "; after this ", ", now ", " and next ", ", soon ", " and afterwards "),
    ),
    (" and then ", ", after that "),
)
ASK = Pool(
    (
        *("Write", "Define", "Please write", "Could you write", "Can you make", "Give me"),
        *("Create", "Make", "Build", "Code", "Please make", "Let me have", "I would like"),
        *("We need", "Show me", "Please define", "Would you write", "You should write", "Get me"),
    ),
    ("Could you please define", "Can you write", "Please create", "Please give me"),
)
FRAMES = Pool(
    (
        "{ask} {sig} with {style}. For each {element}: {steps}. Return {result}.",
        "{ask} a function {sig} with {style}. For every {element}: {steps}. Return {result}.",
        "{ask} {sig} that uses {style}. It goes through each {element}: {steps}. At the end return"
        " {result}.",
        "I need {sig}, with {style}: for every {element} {steps}; return {result}.",
        "{sig} should take each {element} and {steps}. Use {style}. The result is {result}.",
        "Take each {element}: {steps}. Return {result}. Call it {sig} and use {style}.",
        "Using {style}, {ask} {sig}. Each {element}: {steps}. Give back {result}.",
        "Return {result} from {sig}. Before that, for each {element}: {steps}. Use {style}.",
        "{sig}: for each {element}, {steps}, and return {result}. Solve it with {style}.",
        "I want a function called {sig}. With each {element} do this: {steps}. Then return"
        " {result}. Work with {style}.",
        "There is a list of {element}s. {ask} {sig} with {style}: {steps}. I want {result} back.",
        "For each {element}, {steps}. What I want is {result}. The name is {sig}, use {style}.",
    ),
    (
        "{sig} is a function that takes each {element}: {steps}. Then give back {result}. Work"
        " with {style}.",
        "With {style}, {ask} {sig}. For every {element}, {steps}. I want {result}.",
        "I need a function called {sig} using {style}. With each {element}: {steps}. Return"
        " {result} at the end.",
        "For each {element}: {steps}, and the result is {result}. Call it {sig}, with {style}.",
        "{ask} {sig} for a list of {element}s. Each one: {steps}. Use {style} and return {result}.",
    ),
)
# What a request must say, each in a sentence: they may come in any order.
PARTS = (
    (
        *("{ask} {sig}.", "I need {sig}.", "The name is {sig}.", "Call it {sig}."),
        *("{ask} a function {sig}.", "It is called {sig}.", "My function is {sig}."),
        *("The task is {sig}.", "{sig}.", "{sig} is missing.", "The head is {sig}."),
        *("This is about {sig}.", "Name it {sig}.", "I am looking for {sig}.", "Make it {sig}."),
    ),
    (
        *("Use {style}.", "Work with {style}.", "Solve it with {style}.", "Do it with {style}."),
        *("{style} please.", "Take {style} for it.", "It has to use {style}.", "Go with {style}."),
        *("I like {style}.", "By means of {style}.", "Make use of {style}.", "Only with {style}."),
    ),
    (
        *("For each {element}: {steps}.", "For each {element} {steps}."),
        *("Take each {element}: {steps}.", "With every {element} do this: {steps}."),
        *("For every {element}: {steps}.", "Go through each {element}: {steps}."),
        *("Each {element}: {steps}.", "All {element}s: {steps}.", "Per {element}: {steps}."),
        *("There are {element}s: {steps}.", "We have {element}s, {steps}.", "{steps}."),
        *("Given {element}s, {steps}.", "Look at every {element}, {steps}."),
    ),
    (
        *("Return {result}.", "Give back {result}.", "The result is {result}."),
        *("What I want is {result}.", "At the end return {result}.", "Finally return {result}."),
        *("I want {result} back.", "Hand back {result}.", "Output {result}."),
        *("Then return {result}.", "It gives {result}.", "Let it return {result}."),
        *("It returns {result}.", "We expect {result}.", "In the end we want {result}."),
    ),
)


def rename(pipeline: Pipeline, rng: Random, reserved: bool) -> Pipeline:
    """The same function under another name, its argument too."""
    arguments = NUMBER_ARGUMENTS if pipeline.family is NUMBERS else WORD_ARGUMENTS
    # Kept words are spelt in more tokens: with a long name, three steps may not fit the response.
    name = draw_function(rng, reserved, short=reserved and len(pipeline.steps) > 2)
    return replace(pipeline, name=name, argument=draw_argument(rng, arguments, reserved))


def ask(pipeline: Pipeline, style: str, rng: Random, reserved: bool) -> str:
    """A request as a person may write it."""
    joint, keep = draw_joint(rng, JOINTS, reserved), KEEP.draw(rng, reserved)
    text = _frame(rng, reserved).format(
        ask=ASK.draw(rng, reserved),
        sig=pipeline.signature(),
        style=style,
        element=pipeline.family.element,
        steps=joint.join(_clause(step, keep, rng, reserved) for step in pipeline.steps),
        result=_result(pipeline.result, rng),
    )
    return address(text, rng, reserved)


def _frame(rng: Random, reserved: bool) -> str:
    """Sentences in an order of their own; in training, most of them put together anew."""
    if reserved or rng.random() < 0.3:
        return FRAMES.draw(rng, reserved)
    sentences = [rng.choice(part) for part in PARTS]
    rng.shuffle(sentences)
    if rng.random() < 0.15:  # in one sentence
        return ", ".join(text.rstrip(".") for text in sentences) + "."
    sentences = put_aside(sentences, rng, reserved)
    return " ".join(f"{text[:1].upper()}{text[1:]}" for text in sentences)


def _clause(step: Step, keep: str, rng: Random, reserved: bool) -> str:
    predicate = _words(step.predicate, rng) if step.predicate else ""
    if step.change is None:
        return keep.format(p=predicate)
    change = _words(step.change, rng)
    return CHANGE_IF.draw(rng, reserved).format(p=predicate, c=change) if predicate else change


def _words(atom: Atom, rng: Random) -> str:
    text = rng.choice((atom.kind, *OPERATIONS[atom.kind]))
    return text.replace("{k}", str(atom.constant))


def _result(result: Result, rng: Random) -> str:
    return rng.choice((result.text, *RESULTS[result.text]))
