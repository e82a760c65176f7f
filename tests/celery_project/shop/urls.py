"""Addresses of the shop."""

from django.urls import path

from . import views

urlpatterns = [
    path("users/<int:user_id>/", views.sign_up),
    path("orders/<int:order_id>/pay/", views.pay),
    path("orders/<int:order_id>/invoice/", views.invoice),
    path("images/<str:image_id>/resize/", views.resize),
    path("reports/<int:report_id>/<int:pages>/", views.report),
    path("uploads/<int:count>/", views.upload),
    path("documents/<str:name>/", views.index),
    path("rates/<str:currency>/", views.rates),
    path("tasks/<str:task_id>/", views.status),
]
