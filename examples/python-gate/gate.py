"""Asks Latchkey whether a customer may use a feature, and denies where it cannot say: python3 gate.py cus_1 reports"""
import json
import os
import sys
from urllib.parse import quote
from urllib.request import Request, urlopen

URL = os.environ.get("LATCHKEY_URL", "http://127.0.0.1:4680")


def may_use(customer_id: str, feature: str, timeout: float = 2.0) -> bool:
    path = f"/entitlements/{quote(customer_id, safe='')}/features/{quote(feature, safe='')}"
    headers = {"Authorization": f"Bearer {os.environ.get('LATCHKEY_API_KEY')}"}
    try:
        with urlopen(Request(URL + path, headers=headers), timeout=timeout) as answer:
            return json.load(answer)["active"] is True
    except Exception as failure:  # No answer, no access.
        print(f"latchkey: {failure}", file=sys.stderr)
        return False


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python3 gate.py <customer> <feature>")
    print("yes" if may_use(sys.argv[1], sys.argv[2]) else "no")
