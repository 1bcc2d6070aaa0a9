#!/usr/bin/env python3
"""A self-check machine that lends: machine.py URL TENANT SERVICE_POINT_ID

Each line of the input is a patron's barcode, a blank and an item's barcode. Each line of the output is
what the screen shows: "lent ITEM DUE-DATE", "refused ITEM WHY", "busy ITEM" or "unsure ITEM". The
tries in between go to the error output.
"""

import http.client
import json
import sys
import time
import urllib.error
import urllib.request
import uuid

PATIENCE = 60  # seconds that a patron is asked to wait through an outage
LONGEST_ANSWER = 45  # seconds, if circulation does not tell it
# After these statuses the same request may succeed later. So may it after no answer.
TRY_AGAIN = {409, 500, 502, 503, 504}
# After these the item may be lent. The same request with the same key finds out.
UNSURE = {0, 500, 502, 504}


class Machine:
    def __init__(self, url, tenant, service_point):
        self.url, self.service_point = url.rstrip("/"), service_point
        self.headers = {"X-Okapi-Tenant": tenant, "Content-Type": "application/json"}
        self.timeout = LONGEST_ANSWER

    def call(self, path, body=None, key=None):
        """Returns status, headers and JSON of the answer; status 0 if there is none."""
        headers = dict(self.headers)
        if key:
            headers["Idempotency-Key"] = key
        sent = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, sent, headers)
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as answer:
                return answer.status, answer.headers, json.load(answer)
        except urllib.error.HTTPError as refused:
            try:
                return refused.code, refused.headers, json.load(refused)
            except (OSError, ValueError, http.client.HTTPException):
                return refused.code, refused.headers, {}
        except (OSError, ValueError, http.client.HTTPException) as lost:
            print("no answer:", lost, file=sys.stderr, flush=True)
            return 0, {}, {}

    def read_timing(self):
        """Takes the longest answer as the time-out of calls."""
        status, _, timing = self.call("/circulation/check-out-timing")
        if status == 200:
            self.timeout = timing["longestAnswerMs"] / 1000

    def lend(self, patron, item):
        """Returns what the screen shows."""
        key = str(uuid.uuid4())  # one for all tries of this check-out
        body = {"itemBarcode": item, "userBarcode": patron, "servicePointId": self.service_point}
        end, unsure = time.monotonic() + PATIENCE, False
        while True:
            status, headers, answer = self.call("/circulation/check-out-by-barcode", body, key)
            code = headers.get("X-Fault-Code", "")
            if status == 201:
                return "lent %s %s" % (item, answer["dueDate"])
            if status and status not in TRY_AGAIN and code != "LOCK_NOT_ACQUIRED":
                errors = answer.get("errors") or [{"message": "this machine is not set up (%d)" % status}]
                return "refused %s %s" % (item, "; ".join(e["message"] for e in errors))
            unsure = unsure or status in UNSURE
            after = headers.get("Retry-After", "")
            pause = int(after) if after.isdigit() else 1
            if time.monotonic() + pause > end:
                return ("unsure " if unsure else "busy ") + item
            print("again after", status, code, file=sys.stderr, flush=True)
            time.sleep(pause)


def main():
    machine = Machine(*sys.argv[1:4])
    machine.read_timing()
    for line in sys.stdin:
        patron, item = line.split()
        print(machine.lend(patron, item), flush=True)


if __name__ == "__main__":
    main()
