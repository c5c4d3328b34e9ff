"""Words that people may use in a request, and those that are kept for evaluation.

A `Pool` has both. Nothing of `reserved` occurs in training: not the name or thing, not the
courtesy, not the sentence. The words for the operations themselves are all seen: a model of this
size learns what it was shown, and what is asked of it here is to read them in new surroundings.
"""

import builtins
import keyword
from dataclasses import dataclass
from random import Random

SPLITS = ("people", "paraphrase")  # told in these words; the other splits in the grammar's own


@dataclass(frozen=True)
class Pool:
    """Alternatives for training, and others for evaluation."""

    seen: tuple[str, ...]
    reserved: tuple[str, ...]

    def of(self, reserved: bool) -> tuple[str, ...]:
        return self.reserved if reserved else self.seen

    def draw(self, rng: Random, reserved: bool) -> str:
        return rng.choice(self.of(reserved))


def _pool(seen: str, reserved: str) -> Pool:
    return Pool(tuple(seen.split()), tuple(reserved.split()))


NAMES = _pool(
    "Tom Ann Sam Eva Ben Mia Leo Zoe Max Ida Jan Lea Paul Nora Emil Clara Oscar Lucy Felix Anna"
    " Hugo Ella David Maria Peter Julia Simon Laura Martin Sara Daniel Hannah Lukas Emma Jonas"
    " Alice Henry Grace Oliver Ruby Jack Rose Harry Daisy Charlie Freya Alfie Molly Arthur Elsie"
    " Ahmed Fatima Omar Layla Yusuf Amina Hassan Noor Ali Zahra Kenji Yuki Hiro Sakura Takeshi"
    " Wei Ling Chen Mei Jun Ravi Priya Arjun Anika Vikram Meera Diego Lucia Mateo Camila Pablo"
    " Elena Carlos Rosa Juan Ines Kwame Abena Kofi Zuri Tunde Ngozi Ivan Olga Boris Katya Dmitri"
    " Pierre Chloe Luc Amelie Gaston Sven Astrid Lars Freja Nils Maja Aino Mikko Kaisa Rory Niamh"
    " Sean Orla Dylan Megan Rhys Carys Dan Kim Lee Pat Alex Robin Kelly Jamie",
    "Otto Greta Bruno Frida Victor Naomi Edgar Selma Walter Miriam Tobias Judith Farid Soraya"
    " Haruto Aiko Rohan Divya Rafael Bianca Chidi Adaeze Pavel Irina Marcel Odette Gustav Sigrid"
    " Declan Bronwyn Caspar Petra Milan Vera",
)
THINGS = _pool(
    "apples books cards coins pens shells stamps toys pears plums cups plates spoons forks hats"
    " socks shoes shirts rings beads balls bats dolls kites cars bikes boats trains planes rocks"
    " stones leaves seeds nuts eggs cakes cookies candies sweets tickets maps keys bags boxes jars"
    " bottles candles lamps chairs tables bricks tiles nails screws bolts ropes sticks flags badges"
    " medals photos letters papers notebooks pencils crayons brushes rulers erasers magnets gems"
    " pearls feathers flowers roses tulips trees plants fish birds cats dogs horses sheep goats",
    "marbles lemons melons mangoes posters puzzles robots lanterns ribbons buttons blankets"
    " mittens hammers baskets postcards comics acorns crystals daisies rabbits ducks turtles",
)
VERBS = _pool(
    "get make find pick calc run load scan fold form take give build sort clean count read show"
    " move send save mix cut join split check fix trim turn pack fill drop push pull grab"
    " compute process handle sift collect select gather convert update measure reduce extract",
    "weigh blend shape tidy rank stack wrap rinse",
)
NOUNS = _pool(
    "box sun map key cat row tag bit cup log item value number word data score name text"
    " line page part point price total result group pair unit size rate level code file"
    " node tree path step cell table field image song book game card coin stone river house road"
    " bird fish apple lemon green blue big small first last top best daily user order stock trip",
    "harp moon lamb fern pond wolf glove crown sofa piano",
)
NUMBER_ARGUMENTS = _pool(
    "nums data xs values items scores ages numbers ns arr seq series ints heights sizes",
    "zs vec pts marks bids",
)
WORD_ARGUMENTS = _pool(
    "words names texts labels parts strs items strings lines tags ws",
    "terms keys toks langs",
)
_SEEN = (NAMES.seen, THINGS.seen, VERBS.seen, NOUNS.seen, NUMBER_ARGUMENTS.seen)
RESERVED = frozenset(
    word.lower()
    for pool in (NAMES, THINGS, VERBS, NOUNS, NUMBER_ARGUMENTS, WORD_ARGUMENTS)
    for word in pool.reserved
)
# What means something in a program, or what answers call their own variables.
_OWN = ("acc", "adapt", "ans", "apply", "base", "chain", "change", "data", "fits", "good", "inner")
_OWN += ("kept", "middle", "modify", "names", "new", "num", "nums", "out", "res", "temp", "texts")
_OWN += ("total", "valid", "vals", "word", "words")
NOT_MADE_UP = RESERVED | {*keyword.kwlist, *dir(builtins), *_OWN}
OPENINGS = Pool(
    (
        "Hi! ",
        "Hello, ",
        "Hello. ",
        "Hey, ",
        "Hi, ",
        "OK, ",
        "So, ",
        "Quick question: ",
        "Dear all, ",
        "Hello there. ",
        "Good day. ",
        "Good afternoon, ",
        "Well, ",
        "Now, ",
        "One more: ",
        "Here is my question. ",
        "I have a question. ",
        "Please help. ",
        "Sorry, ",
        "Next one: ",
        "A small thing: ",
        "Could you help me? ",
        "Listen: ",
    ),
    ("Good morning. ", "Hey there! ", "Good evening, ", "Excuse me, ", "Right, "),
)
CLOSINGS = Pool(
    (
        " Thanks!",
        " Thank you.",
        " Please.",
        " Thanks a lot!",
        " Many thanks.",
        " please",
        " thanks",
        " Thanks in advance.",
        " Thank you very much!",
        " Bye!",
        " That is all.",
        " It is for school.",
        " I need it today.",
        " Can you do that?",
        " Best wishes.",
        " Sorry for the trouble.",
        " Take your time.",
        " You are a star!",
        " Nice day to you.",
    ),
    (
        " Cheers!",
        " Much obliged.",
        " I would be grateful.",
        " Thanks so much!",
        " That would help.",
    ),
)
FILLERS = (
    *("please", "just", "now", "again", "really", "also", "kindly", "here", "simply", "well"),
    *("of course", "if possible", "you know", "this time", "today", "for me", "as always"),
    *("I think", "right away", "in short", "one by one", "to be clear", "maybe", "exactly"),
)
ASIDES = (
    *("It is a nice day.", "I hope you are well.", "This is for my class.", "We do this at home."),
    *("My friend asked me.", "I tried it before.", "It should be easy.", "There is no hurry."),
    *("You did well last time.", "That is the whole story.", "Here it comes.", "I am curious."),
    *("My teacher wants it.", "Nobody here knows.", "It came up at work.", "Do not worry."),
)
_ONSETS = (*"bcdfghjklmnprstvwyz", "br", "ch", "cl", "dr", "fr", "gr", "pl", "sh", "st", "th", "tr")
_VOWELS = (*"aeiouaeiou", "ai", "ea", "ee", "oo", "ou")
_CODAS = (*[""] * 12, *"bdgklmnprst", "ck", "lt", "mp", "nd", "ng", "rt", "sk", "ss", "st", "th")


def draw_name(rng: Random, reserved: bool) -> str:
    """Of a person; in training, half of them are made up, so that any can be copied."""
    if not reserved and rng.random() < 0.5:
        return invent(rng).capitalize()
    return NAMES.draw(rng, reserved)


def draw_thing(rng: Random, reserved: bool) -> str:
    """What is counted, in the plural."""
    if not reserved and rng.random() < 0.3:
        return invent(rng).removesuffix("s") + "s"
    return THINGS.draw(rng, reserved)


def draw_cast(rng: Random, count: int, reserved: bool) -> tuple[tuple[str, ...], str]:
    """Different people, and what they have."""
    names: list[str] = []
    while len(names) < count:
        name = draw_name(rng, reserved)
        if name not in names:
            names.append(name)
    return tuple(names), draw_thing(rng, reserved)


def draw_function(rng: Random, reserved: bool, short: bool = False) -> str:
    """The name of a function: a noun, and a verb unless it is to be short.

    In training, many of both are made up: a word that is always known need not be copied.
    """
    verb, noun = VERBS.draw(rng, reserved), NOUNS.draw(rng, reserved)
    if not reserved:
        verb = invent(rng) if rng.random() < 0.4 else verb
        noun = invent(rng) if rng.random() < 0.4 else noun
    both = (f"{verb}_{noun}", f"{verb}_{noun}", f"{verb}_{noun}", f"{noun}_{verb}", noun)
    return noun if short else rng.choice(both)


def draw_argument(rng: Random, pool: Pool, reserved: bool) -> str:
    """Of a function; in training, half of them are made up."""
    if not reserved and rng.random() < 0.5:
        return invent(rng, (1, 1, 2)) + rng.choice(("s", "s", ""))
    return pool.draw(rng, reserved)


def invent(rng: Random, syllables: tuple[int, ...] = (1, 1, 2, 2)) -> str:
    """A word that nobody knows: of so many syllables, or of the halves of two words."""
    while True:
        word = _blend(rng) if rng.random() < 0.5 else _spell(rng, rng.choice(syllables))
        # chance must not spell what training may not see, nor what a program needs
        if len(word) > 2 and not {word, f"{word}s", word.removesuffix("s")} & NOT_MADE_UP:
            return word


def _spell(rng: Random, syllables: int) -> str:
    parts = (_ONSETS, _VOWELS, _CODAS)
    word = "".join(rng.choice(part) for _ in range(syllables) for part in parts)
    return word if len(word) > 2 else word + "lo"


def _blend(rng: Random) -> str:
    """As tokens of words are cut: so each of them comes in words where it says nothing."""
    first, second = (rng.choice(rng.choice(_SEEN)).lower() for _ in range(2))
    return first[: rng.randint(1, 3)] + second[-rng.randint(1, 4) :]


def draw_joint(rng: Random, pool: Pool, reserved: bool) -> str:
    """What stands between things that happen one after the other; in training, often made up."""
    if reserved or rng.random() < 0.7:
        return pool.draw(rng, reserved)
    word = invent(rng) if rng.random() < 0.3 else rng.choice(FILLERS)
    return rng.choice((f", {word} ", f" {word} ", f"; {word} ", f" and {word} ", f", {word}, "))


def put_aside(sentences: list[str], rng: Random, reserved: bool) -> list[str]:
    """The sentences; in training now and then with one that has nothing to do with them."""
    if reserved or rng.random() < 0.75:
        return sentences
    place = rng.randrange(len(sentences) + 1)
    return [*sentences[:place], rng.choice(ASIDES), *sentences[place:]]


def _fill(text: str, rng: Random) -> str:
    """Now and then words that mean nothing here: what is said must be found among others."""
    words = text.split(" ")
    for _ in range(rng.choice((0, 0, 0, 0, 1, 1, 2))):
        filler = invent(rng) if rng.random() < 0.4 else rng.choice(FILLERS)
        place = rng.randrange(1, len(words) + 1)
        before = words[place - 1]
        if before.count("(") == before.count(")"):  # arguments stand together
            words.insert(place, filler)
    return " ".join(words)


def address(text: str, rng: Random, reserved: bool) -> str:
    """The request with a courtesy or none, a small first letter or not, and its end as typed."""
    if not reserved:
        text = _fill(text, rng)
    if rng.random() < 0.25:
        text = text[:1].lower() + text[1:]
    if rng.random() < 0.35:
        text = OPENINGS.draw(rng, reserved) + text
    ending = rng.random()
    if ending < 0.3:
        return text + CLOSINGS.draw(rng, reserved)
    return text.rstrip(".") if ending < 0.45 else text
