"""An MCP server that answers as a file says: bytes per method, with the request's id put in."""

import base64
import json
import pathlib
import sys

ANSWERS = {
    method: base64.b64decode(answer)
    for method, answer in json.loads(pathlib.Path(sys.argv[1]).read_text()).items()
}

for line in sys.stdin.buffer:
    message = json.loads(line)
    if "id" not in message or "method" not in message:  # a notification, or an answer
        continue
    answer = ANSWERS.get(message["method"], b"")
    sys.stdout.buffer.write(answer.replace(b'"ID"', json.dumps(message["id"]).encode()) + b"\n")
    sys.stdout.buffer.flush()
