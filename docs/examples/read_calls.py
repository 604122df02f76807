"""Prints each call of a key as a line of JSON, or the turns of one call's transcript. Python 3.9 or newer, nothing else.

    export EVALGATE_URL=http://127.0.0.1:8080 EVALGATE_API_KEY=evg_...
    python3 read_calls.py             all calls, newest first
    python3 read_calls.py CALL_ID     the transcript of one call
"""
import json
import os
import re
import sys
import time
from urllib.error import HTTPError
from urllib.parse import urljoin
from urllib.request import Request, urlopen

URL = os.environ.get("EVALGATE_URL", "http://127.0.0.1:8080").rstrip("/")
KEY = os.environ.get("EVALGATE_API_KEY") or sys.exit("EVALGATE_API_KEY is not set: export the API key.")
MAX_TRIES = 5


def get(url):
    """Returns the body and the address of the next page, or None. Waits as long as the answer says."""
    tries = 0
    while True:
        request = Request(url, headers={"Authorization": f"Bearer {KEY}"})
        try:
            with urlopen(request, timeout=60) as response:
                following = re.search(r'<([^>]+)>; rel="next"', response.headers.get("Link", ""))
                return json.load(response), following and urljoin(url, following[1])
        except HTTPError as error:
            # Only an answer with Retry-After can go better: a damaged record (record_malformed) has none.
            wait = error.headers.get("Retry-After")
            tries += error.code != 429
            if wait is None or tries == MAX_TRIES:
                code, request_id = error.headers.get("X-Error-Code"), error.headers.get("X-Request-Id")
                raise SystemExit(f"{error.code} {code}, request {request_id}: {error.read().decode()}") from None
            time.sleep(int(wait))


def pages(url):
    while url:
        body, url = get(url)
        yield body


def turns(call_id):
    """The turns of a transcript. One that is cut goes on with the same index on the next page."""
    joined = {}
    for page in pages(f"{URL}/v2/calls/{call_id}/transcript?pageSize=200"):
        for segment in page["transcript"]["segments"]:
            joined[segment["index"]] = joined.get(segment["index"], "") + segment["text"]
    return joined.values()


def lines():
    if len(sys.argv) > 1:
        yield from turns(sys.argv[1])
    else:
        for page in pages(f"{URL}/v2/calls?after=&pageSize=100"):
            yield from map(json.dumps, page["calls"])


try:
    for line in lines():
        print(line)
    sys.stdout.flush()
except BrokenPipeError:
    # The reader has enough (`| head`). Python writes what is left when it ends, so that has to go somewhere.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
