"""The fifteen tasks of the shop."""

from celery import Task, chain, chord, shared_task
from celery.exceptions import SoftTimeLimitExceeded

from . import files, gateway

ATTEMPTS_OF_CARD = 3


class Counted(Task):
    """Counts how its tasks end."""

    def on_success(self, retval, task_id, args, kwargs):
        files.write("rates-succeeded", 1 + (files.read("rates-succeeded") or 0))

    def on_failure(self, exc, task_id, args, kwargs, einfo):
        files.write("rates-failed", str(exc))


# one task alone


@shared_task(ignore_result=True)
def send_welcome(user_id):
    files.write(f"welcome-{user_id}", {"to": user_id})


@shared_task(
    base=Counted,
    autoretry_for=(ConnectionError, TimeoutError),
    retry_backoff=True,
    retry_backoff_max=60,
    max_retries=4,
)
def fetch_rates(currency):
    rates = gateway.rates(currency)
    files.write(f"rates-{currency}", rates)
    return rates


@shared_task(bind=True, max_retries=ATTEMPTS_OF_CARD, default_retry_delay=30)
def charge_card(self, order_id):
    try:
        receipt = gateway.charge(order_id)
    except gateway.Busy as error:
        raise self.retry(exc=error, countdown=10 * (self.request.retries + 1)) from error
    files.write(f"receipt-{order_id}", {"receipt": receipt, "attempt": self.request.retries + 1})
    return receipt


@shared_task
def notify_failure(request, exc, traceback):
    files.write("charge-failed", {"task": request.task, "args": list(request.args)})


@shared_task(soft_time_limit=20, time_limit=30)
def build_invoice(order_id):
    try:
        return {"order": order_id, "total": order_id * 100}
    except SoftTimeLimitExceeded:
        return {"order": order_id, "total": None}


@shared_task(bind=True)
def import_rows(self, rows):
    for number, row in enumerate(rows, 1):
        files.write(f"row-{row}", row)
        self.update_state(state="PROGRESS", meta={"done": number, "total": len(rows)})
    return len(rows)


@shared_task(rate_limit="10/m")
def resize_image(image_id, size):
    return f"{image_id}-{size}.png"


# a report: pages side by side, then one file (chord)


@shared_task
def render_page(report_id, page):
    return f"{report_id}/{page}"


@shared_task
def merge_pages(pages, report_id):
    files.write(f"report-{report_id}", sorted(pages))
    return len(pages)


@shared_task
def build_report(report_id, pages):
    chord(render_page.s(report_id, page) for page in range(pages))(merge_pages.s(report_id))


# a document: one step after another (chain)


@shared_task(autoretry_for=(Exception,), max_retries=2, default_retry_delay=5)
def download(url):
    return gateway.page(url)


@shared_task
def extract(text):
    return text.split()


@shared_task(acks_late=True)
def store(words, name):
    files.write(f"words-{name}", words)
    return len(words)


def index(url, name):
    return chain(download.s(url), extract.s(), store.s(name)).apply_async()


# by beat


@shared_task
def clean_up(older_than_days):
    for name in files.names():
        if name.startswith("welcome-"):
            files.delete(name)
    return older_than_days


@shared_task(acks_late=True)
def sync_stock(warehouse):
    files.write(f"stock-{warehouse}", {"synced": True})
