"""Announces changes to evalgate, and sends them again until they are taken. Needs Python 3.9 and no package.

    EVALGATE_ADMIN_URL=http://127.0.0.1:8081 CHANGES_SECRET=whsec_... python3 announce.py '[{"evaluation": "...", "workspace": "..."}]'
"""

import base64
import hashlib
import hmac
import json
import os
import sys
import time
import urllib.error
import urllib.request
import uuid

URL = os.environ.get("EVALGATE_ADMIN_URL", "http://127.0.0.1:8081")
SECRET = base64.b64decode(os.environ["CHANGES_SECRET"].removeprefix("whsec_"))


def announce(changes):
    """Returns once the changes are in force in every gateway. Raises HTTPError for a fault that another try does not mend."""
    body = json.dumps({"changes": changes}).encode()
    message_id = f"msg_{uuid.uuid4()}"
    delay = 1
    while True:
        try:
            send(message_id, body)
            return
        except urllib.error.HTTPError as error:
            if error.code < 500:
                raise
        except OSError:
            pass  # Not known whether it was taken: the same again, with the same id, does no harm.
        time.sleep(delay)
        delay = min(60, 2 * delay)


def send(message_id, body):
    """Signed as Standard Webhooks has it."""
    at = str(int(time.time()))
    signed = hmac.new(SECRET, f"{message_id}.{at}.".encode() + body, hashlib.sha256).digest()
    headers = {
        "Content-Type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": at,
        "webhook-signature": "v1," + base64.b64encode(signed).decode(),
    }
    request = urllib.request.Request(f"{URL}/api/changes", data=body, headers=headers, method="POST")
    with urllib.request.urlopen(request, timeout=5) as response:
        response.read()


if __name__ == "__main__":
    announce(json.loads(sys.argv[1]))
