#!/bin/sh
# The server with curl alone: xpredflow serve, then sh examples/serve_curl.sh [URL]
URL=${1:-http://127.0.0.1:8000}
JSON='content-type: application/json'
ASK='[{"role": "user", "content": "Zoe has 25 pens, loses 7, buys 4. How many pens now? Use letters."}]'

# a whole answer, with the decoder and its options beside the usual fields
curl -sS "$URL/v1/chat/completions" -H "$JSON" \
  -d "{\"messages\": $ASK, \"decoder\": \"threshold:0.9\", \"budget\": \"1/2\"}"
echo

# a stream: settled text as it comes, drafts as events of that name
curl -sSN "$URL/v1/chat/completions" -H "$JSON" \
  -d "{\"messages\": $ASK, \"decoder\": \"threshold:0.9\", \"stream\": true, \"drafts\": true}"

# what stands between a text and a suffix
curl -sS "$URL/v1/completions" -H "$JSON" \
  -d '{"prompt": "25-7=", "suffix": "\n", "max_tokens": 2, "decoder": "mask"}'
echo

# a misspelt option is refused, with the nearest one
curl -sS "$URL/v1/completions" -H "$JSON" -d '{"prompt": "25-7=", "buget": 2}'
echo
