"""Support pages of the catalogue: they show, never change. Corrections have their own pages, with reasons."""

from django.contrib import admin

from catalog import models
from core.admin import ReadOnlyAdmin


@admin.register(models.Accelerator)
class AcceleratorAdmin(ReadOnlyAdmin):
    list_display = ["slug", "name", "vendor", "generation", "year"]
    search_fields = ["slug", "name"]


@admin.register(models.ModelArchitecture)
class ModelArchitectureAdmin(ReadOnlyAdmin):
    list_display = ["slug", "name", "family", "kind"]
    search_fields = ["slug", "name"]


@admin.register(models.CloudOffer)
class CloudOfferAdmin(ReadOnlyAdmin):
    list_display = ["cloud", "region", "instance_type", "accelerator", "accelerator_count"]
    list_select_related = ["accelerator"]
    search_fields = ["instance_type", "region"]


@admin.register(models.OfferPrice)
class OfferPriceAdmin(ReadOnlyAdmin):
    list_display = ["offer", "kind", "amount", "currency", "as_of", "source"]
    list_select_related = ["offer"]


@admin.register(models.PriceRecord)
class PriceRecordAdmin(ReadOnlyAdmin):
    list_display = ["accelerator", "platform", "low", "high", "currency", "as_of", "source"]
    list_select_related = ["accelerator", "platform"]


@admin.register(
    models.AcceleratorSpec, models.ArchitectureSpec, models.PlatformSpec, models.TcoDefaultValue
)
class RevisionAdmin(ReadOnlyAdmin):
    list_display = ["__str__", "origin", "as_of", "confidence", "source"]


admin.site.register([models.ServerPlatform, models.TcoDefault, models.PriceImport], ReadOnlyAdmin)
