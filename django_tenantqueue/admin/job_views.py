"""The pages that belong to the page of a job: its live parts, its values, and enqueue again."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth import get_permission_codename
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.cache import add_never_cache_headers
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from ..exceptions import DuplicateJob, TenantQueueError
from ..models import Job, TenantQueue
from ..operations.again import enqueue_again, source_of
from ..states import State
from ..status.masking import MASK
from .acting import acting
from .formats import read_number
from .job_actions import JobActions
from .job_again import AgainForm, can_be_repeated
from .job_forms import WaitingJobForm
from .job_page import ACTIONS_OF, describe_state, is_tunable
from .job_values import download_value
from .links import job_url


class JobPages(JobActions):
    """Finds the job of an address, and shows what its page links to or refreshes from."""

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Job | None:
        """Return a job: from the small leaf of unfinished ones if it is there, else from all."""
        if read_number(object_id) is None:
            return None
        jobs = self.get_queryset(request).filter(pk=object_id)
        return jobs.filter(final=False).first() or jobs.first()

    def get_urls(self) -> list[URLPattern]:
        safe, name = self.admin_site.admin_view, "tenantqueue_job"
        value = "<path:object_id>/<str:part>.json"
        return [
            path("<path:object_id>/live/", safe(self.live_view), name=f"{name}_live"),
            path("<path:object_id>/again/", safe(self.again_view), name=f"{name}_again"),
            path(value, safe(self.value_view), name=f"{name}_value"),
            *super().get_urls(),
        ]

    def may_enqueue_again(self, request: HttpRequest, job: Job) -> bool:
        """Whether this user may make a new job from a job: with the permissions add and change."""
        may_add = request.user.has_perm(f"tenantqueue.{get_permission_codename('add', self.opts)}")
        return may_add and self.has_change_permission(request, job) and can_be_repeated(job)

    def live_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Return the parts of a job's page that change while the job is unfinished."""
        job = self.shown_row(request, object_id)
        context = {"opts": self.opts, **self.changing_context(request, job)}
        request.current_app = self.admin_site.name
        response = TemplateResponse(request, "admin/tenantqueue/job/live.html", context)
        add_never_cache_headers(response)
        return response

    def value_view(self, request: HttpRequest, object_id: str, part: str) -> HttpResponse:
        """Send the arguments or the result of a job as JSON, masked as on its page."""
        response = download_value(self.shown_row(request, object_id), part)
        if response is None:
            raise Http404
        return response

    def again_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask for arguments, and enqueue a new job that runs what this one runs."""
        job = self.shown_row(request, object_id)
        if not self.may_enqueue_again(request, job):
            raise PermissionDenied
        page_of_job = job_url(job.pk, self.admin_site)
        back = HttpResponseRedirect(page_of_job)
        queue = self.queue_of(job)
        if queue is None:
            text = gettext("Its queue was deleted: the job cannot be enqueued again.")
            self.message_user(request, text, messages.ERROR)
            return back
        try:
            source, _task = source_of(job)
        except TenantQueueError as error:
            text = gettext("The job cannot be enqueued again: %s") % error
            self.message_user(request, text, messages.ERROR)
            return back
        form = AgainForm(job, queue, source, request.POST if request.method == "POST" else None)
        if form.is_valid():
            new = self._enqueue_again(request, job, form)
            if new is not None:
                return HttpResponseRedirect(job_url(new.pk, self.admin_site))
        return self.page(
            request,
            "admin/tenantqueue/job/again.html",
            gettext("Enqueue job #%d again") % job.pk,
            job=job,
            job_url=page_of_job,
            queue=queue,
            form=form,
            mask=MASK,
        )

    def _enqueue_again(self, request: HttpRequest, job: Job, form: AgainForm) -> Job | None:
        """Enqueue the job of a valid form; None: it was rejected, and the form has the error."""
        asked = form.cleaned_data
        args, kwargs = form.call
        try:
            with acting(request):
                new = enqueue_again(
                    job,
                    tuple(args),
                    kwargs,
                    queue=asked["queue"],
                    priority=asked["priority"],
                    run_at=asked["run_at"],
                )
        except DuplicateJob as error:
            form.add_error(None, self._duplicate_text(error.job_id))
            return None
        except (TenantQueueError, TypeError) as error:
            form.add_error(None, str(error))
            return None
        if new.duplicate:
            form.add_error(None, self._duplicate_text(new.pk))
            return None
        text = gettext("Enqueued as job #%(new)d, from job #%(old)d.")
        self.message_user(request, text % {"new": new.pk, "old": job.pk}, messages.SUCCESS)
        if new.state == State.CANCELLED:
            text = gettext("It was cancelled at once: another job has its unique key.")
            self.message_user(request, text, messages.WARNING)
        return new

    def _duplicate_text(self, job_id: int | None) -> SafeString:
        return format_html(
            gettext(
                "Nothing was enqueued: {link} has the same unique key. Change the arguments that "
                "make the key, or wait for its end."
            ),
            link=format_html('<a href="{}">#{}</a>', job_url(job_id or 0, self.admin_site), job_id),
        )

    def changing_context(
        self, request: HttpRequest, job: Job, form: WaitingJobForm | None = None
    ) -> dict[str, Any]:
        """Return what the parts of the page show that change while the job is unfinished.

        `form`: with the errors of what was entered.
        """
        site, may_change = self.admin_site, self.has_change_permission(request, job)
        queue = self.queue_of(job)
        if form is None and may_change and is_tunable(job):
            form = WaitingJobForm(job, queue)
        again = self.may_enqueue_again(request, job)
        return {
            "form": form,
            "buttons": ACTIONS_OF[State(job.state)] if may_change else (),
            "again_url": job_url(job.pk, site, "again") if again else "",
            "live_url": "" if job.final else job_url(job.pk, site, "live"),
            **describe_state(site, request, self.using, job, queue),
        }

    def queue_of(self, job: Job) -> TenantQueue | None:
        """Return the queue of a job; None: it was deleted by hand."""
        return TenantQueue.objects.using(self.using).filter(pk=job.queue_id).first()
