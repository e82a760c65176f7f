"""Order everything that the shop can do, and print what it left behind.

SHOP_EAGER=1 python try_it.py
"""

import json
import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
django.setup()

from django.test import Client  # noqa: E402
from shop import files, tasks  # noqa: E402

PAGES = (
    "/users/7/",
    "/orders/3/pay/",
    "/orders/3/invoice/",
    "/images/cat/resize/",
    "/reports/5/4/",
    "/uploads/3/",
    "/documents/terms/",
    "/rates/EUR/",
)


def main():
    client = Client(raise_request_exception=True)
    answers = {page: client.post(page).json() for page in PAGES}
    tasks.sync_stock.delay("north")
    found = {name: files.read(name) for name in files.names()}
    tasks.clean_up.delay(older_than_days=30)
    json.dump({"answers": answers, "files": found, "after": files.names()}, sys.stdout)


if __name__ == "__main__":
    main()
