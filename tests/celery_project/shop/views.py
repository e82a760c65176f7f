"""Pages that start the tasks."""

from celery import group
from celery.result import AsyncResult
from django.db import transaction
from django.http import JsonResponse
from django.views.decorators.csrf import csrf_exempt

from . import tasks

ONE_HOUR = 3600


@csrf_exempt
def sign_up(request, user_id):
    transaction.on_commit(lambda: tasks.send_welcome.delay(user_id))
    return JsonResponse({"welcome": user_id})


@csrf_exempt
def pay(request, order_id):
    result = tasks.charge_card.apply_async(
        (order_id,), countdown=5, expires=ONE_HOUR, link_error=tasks.notify_failure.s()
    )
    return JsonResponse({"job": result.id})


def invoice(request, order_id):
    result = tasks.build_invoice.delay(order_id)
    return JsonResponse(result.get(timeout=10))


def status(request, task_id):
    result = AsyncResult(task_id)
    return JsonResponse({"state": result.state, "ready": result.ready()})


@csrf_exempt
def resize(request, image_id):
    sizes = ("small", "large")
    results = group(tasks.resize_image.s(image_id, size) for size in sizes)()
    return JsonResponse({"names": results.get(timeout=10)})


@csrf_exempt
def report(request, report_id, pages):
    tasks.build_report.apply_async(
        kwargs={"report_id": report_id, "pages": pages}, queue="reports", priority=3
    )
    return JsonResponse({"report": report_id})


@csrf_exempt
def upload(request, count):
    result = tasks.import_rows.delay(list(range(count)))
    return JsonResponse({"job": result.id})


@csrf_exempt
def index(request, name):
    tasks.index(f"https://example.com/{name}", name)
    return JsonResponse({"document": name})


@csrf_exempt
def rates(request, currency):
    tasks.fetch_rates.delay(currency)
    return JsonResponse({"currency": currency})
