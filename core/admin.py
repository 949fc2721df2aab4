"""Support pages: look at people, teams and rates; business rows are read-only here."""

from django.contrib import admin
from django.http import HttpRequest

from core.models import AuditEntry, ExchangeRate, Job, Membership, Organisation, Team, User


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Shows, never changes: business steps have their own pages, with their own rules."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    list_display = ["at", "actor", "action", "object_type", "object_label"]
    search_fields = ["action", "object_label"]


@admin.register(Job)
class JobAdmin(ReadOnlyAdmin):
    list_display = ["key", "status", "percent", "attempts", "created_at"]


admin.site.register([User, Organisation, Team, Membership, ExchangeRate], ReadOnlyAdmin)
