"""lm-evaluation-harness: its tasks decoded by our decoders, our tasks graded inside it.

xpredflow lm-eval --model xpredflow --model_args pretrained=tiny,decoder=flow,budget=1/4 \
    --tasks xpredflow_minimath --apply_chat_template

The harness finds no plug-ins by itself: `running` registers the model and adds our task files
before its command line starts. From Python: `from xpredflow.harness.model import XpredflowLM`.
"""
