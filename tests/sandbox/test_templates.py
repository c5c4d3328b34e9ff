"""Chat templates: the text of transformers, and bounds on what a hostile one can take."""

import json

import pytest
from byte_tokenizer import byte_tokenizer
from toy import ToyModel

from xpredflow import InputError
from xpredflow.engine.chat import chat_text
from xpredflow.sandbox import templates
from xpredflow.sandbox.templates import render_template

MESSAGES = [
    {"role": "system", "content": "Be brief. "},
    {"role": "user", "content": "<b>2+3=</b> \u2028"},
]
HONEST = {
    "loops": "{% for m in messages %}\n  {{ m.role }}{% if loop.last %}{% break %}{% endif %}\n"
    "{% endfor %}",
    "json": "{{ messages | tojson(indent=2) }}{{ {'b': 1, 'a': '<é>'} | tojson(sort_keys=true) }}",
    "namespace": "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}"
    "{% endfor %}{{ ns.n }}{{ dict(a=1)['a'] }}",
    "generation": "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}\n"
    "{% endfor %}",
    "special": "{{ bos_token }}{% if tools is not none %}t{% endif %}{{ eos_token }}"
    "{%- if add_generation_prompt %}|go{% endif %}",
    "macro": "{% macro turn(m) -%}[{{ m['role'] | upper }}]{{ m['content'] | trim }}{%- endmacro %}"
    "{% for m in messages %}{{ turn(m) }}{% endfor %}",
}
HOSTILE = {
    "time": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "memory": "{% set x = 'x' * 4000000000 %}",
    "padding": "{{ '%3000000000d' % 1 }}",
    "output": "{% for a in range(9999) %}{{ 'x' * 10000 }}{% endfor %}",
    "doubling": "{% set n = namespace(s='xxxxxxxx') %}{% for a in range(60) %}"
    "{% set n.s = n.s ~ n.s %}{% endfor %}",
    "recursion": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "nesting": "{{ " + "(" * 5000 + ")" * 5000 + " }}",
    "classes": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "globals": "{{ raise_exception.__globals__['json'] }}",
    "format": "{{ '{0.__class__.__init__.__globals__}'.format(messages) }}",
    "include": "{% include '/etc/passwd' %}",
    "power": "{{ (2 ** 40000000000) % 7 }}",
}


class Chatting(ToyModel):
    def __init__(self, template: object) -> None:
        super().__init__()
        self.tokenizer = byte_tokenizer()
        self.tokenizer.chat_template = template


@pytest.mark.parametrize("name", HONEST)
@pytest.mark.parametrize("ends", ["answer", "message"])
def test_the_text_is_that_of_transformers(name: str, ends: str) -> None:
    model = Chatting(HONEST[name])
    theirs = model.tokenizer.apply_chat_template(
        MESSAGES, tokenize=False, add_generation_prompt=ends == "answer"
    )
    assert chat_text(model, MESSAGES, ends=ends) == theirs  # type: ignore[arg-type]


@pytest.mark.parametrize("content", ["{{ m.content }}", "{{ m.content | trim }}!"])
@pytest.mark.parametrize("begun", ["so", "so it is \n"])
def test_a_last_message_is_continued_as_in_transformers(content: str, begun: str) -> None:
    model = Chatting("{% for m in messages %}[" + content + "]{% endfor %}")
    messages = [*MESSAGES, {"role": "assistant", "content": begun}]
    theirs = model.tokenizer.apply_chat_template(
        messages, tokenize=False, continue_final_message=True
    )
    assert chat_text(model, messages, ends="continued") == theirs


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_template_is_refused_and_the_next_is_rendered(name: str) -> None:
    with pytest.raises(InputError, match=r"^the template") as caught:
        render_template(HOSTILE[name], {"messages": MESSAGES}, "the template of the test")
    assert "\n" not in str(caught.value)
    assert render_template("{{ a }}", {"a": 5}, "the template of the test") == "5"


@pytest.mark.parametrize(
    ("template", "line"),
    [
        ("a\n{% for %}", 2),
        ("a\nb\n{{ raise_exception('no tools here') }}", 3),
        ("{{ 'a' }}\n{{ messages[7].content.x }}", 2),
        ("{% macro f() %}\n\n{{ 1 / 0 }}{% endmacro %}\n{{ f() }}", 3),
    ],
)
def test_an_error_names_the_file_and_the_line(template: str, line: int, tmp_path) -> None:
    model = Chatting(template)
    model.tokenizer.name_or_path = str(tmp_path)
    with pytest.raises(InputError, match=rf"tokenizer_config\.json, line {line}: "):
        chat_text(model, MESSAGES)
    (tmp_path / "chat_template.jinja").write_text(template)
    with pytest.raises(InputError, match=rf"chat_template\.jinja, line {line}: "):
        chat_text(model, MESSAGES)


def test_several_templates_and_none_that_fits() -> None:
    assert chat_text(Chatting({"default": "d", "tool_use": "t"}), MESSAGES) == "d"
    with pytest.raises(InputError, match="called default"):
        chat_text(Chatting({"tool_use": "t"}), MESSAGES)
    with pytest.raises(InputError, match="expected a text"):
        chat_text(Chatting(["x"]), MESSAGES)
    with pytest.raises(InputError, match="no messages"):
        chat_text(Chatting("x"), [])
    with pytest.raises(InputError, match="leaves out the last message"):
        chat_text(Chatting("x"), MESSAGES, ends="continued")


def test_a_template_sees_plain_values_alone() -> None:
    names = "{{ [self, cycler, joiner, lipsum] | length }}{{ messages.append(1) }}"
    with pytest.raises(InputError, match="SecurityError"):
        render_template(names, {"messages": []}, "the template of the test")
    text = json.dumps(MESSAGES)
    assert render_template("{{ a }}", {"a": text}, "the template of the test") == text


def test_a_process_that_failed_renders_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []
    start = templates._start

    def counted():
        process = start()
        started.append(process.pid)
        return process

    monkeypatch.setattr(templates, "_start", counted)
    renderer = templates._Renderer()
    try:
        for n in range(3):  # one process for all that goes well
            reply = renderer.reply({"template": "{{ n }}", "variables": {"n": n}})
            assert reply == {"text": str(n)}
        assert len(started) == 1
        assert "error" in renderer.reply({"template": "{{ 1 / 0 }}", "variables": {}})
        assert len(started) == 2  # the error is that of a process that did nothing before
        assert renderer.reply({"template": "fine", "variables": {}}) == {"text": "fine"}
        assert len(started) == 3
    finally:
        renderer.close()
