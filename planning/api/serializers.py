"""Shapes of the API. State, hashes, amounts and numbers are only ever read."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from core.drf import StrictJSONField
from core.errors import InputError
from core.messages import msg
from core.models import CURRENCY_CHOICES, Team
from core.money import Money
from core.organisation import today
from core.templatetags.ui import said
from planning import policies
from planning.models import (
    ApprovalLimit,
    ApprovalPolicy,
    ApprovalRule,
    ApprovalStep,
    Budget,
    BudgetChange,
    CapacityRequest,
    Delegation,
    LedgerEntry,
    PlanChoice,
    RequestRevision,
    RevisionUse,
    Vote,
)
from planning.models.approvals import CarryOver, Decision
from planning.models.plans import SpendKind
from planning.selectors.budgets import Balance
from planning.selectors.conditions import below_plan
from planning.selectors.review_work import action_behind
from planning.selectors.team_use import use_of
from planning.services.ledger import policy_in_force
from planning.states import REQUEST_RULES, actions_of
from planning.study.schema import load_schemas
from planning.workloads import Kind

OF_PEOPLE = [name for name in actions_of(REQUEST_RULES)
             if name not in ("start_review", "grant", "return", "reject")]  # fmt: skip


class PlanSerializer(serializers.ModelSerializer[PlanChoice]):
    class Meta:
        model = PlanChoice
        fields = [
            "study", "plan_key", "accelerator_slug", "cards", "servers", "mode", "spend_kind", "amount", "currency",
            "base_amount", "base_currency", "rate", "rate_date", "summary", "chosen_at",
        ]  # fmt: skip


class RevisionSerializer(serializers.ModelSerializer[RequestRevision]):
    plan = PlanSerializer(read_only=True, allow_null=True, default=None)

    class Meta:
        model = RequestRevision
        fields = [
            "id",
            "number",
            "origin",
            *RequestRevision.CONTENT,
            "content_hash",
            "submitted_at",
            "plan",
        ]


class VoteSerializer(serializers.ModelSerializer[Vote]):
    """`warning`: that the plan costs more than the vote's cap; empty where it fits."""

    voter = serializers.EmailField(source="voter.email", read_only=True)
    principal = serializers.EmailField(source="principal.email", read_only=True)

    warning = serializers.SerializerMethodField()

    class Meta:
        model = Vote
        fields = [
            "voter",
            "principal",
            "decision",
            "reason",
            "at",
            "cap_amount",
            "cap_currency",
            "order_by",
            "warning",
        ]

    def get_warning(self, vote: Vote) -> str:
        return said(below_plan(vote.cap, vote.step.revision.plan)) if vote.cap else ""


class UseSerializer(serializers.ModelSerializer[RevisionUse]):
    """How busy the team's own cards were; `share` is null unless the state is known, and `low` is under the policy's
    threshold `below`."""

    low = serializers.BooleanField(read_only=True)

    class Meta:
        model = RevisionUse
        fields = ["state", "share", "cards", "covered", "first", "last", "below", "low", "reason"]


class StepSerializer(serializers.ModelSerializer[ApprovalStep]):
    """`content_hash` is what a decision has to send back as `seen_hash`."""

    votes = VoteSerializer(many=True, read_only=True)
    request = serializers.IntegerField(source="revision.request_id", read_only=True)
    revision_number = serializers.IntegerField(source="revision.number", read_only=True)
    team_use = UseSerializer(source="revision.team_use", read_only=True, default=None)

    class Meta:
        model = ApprovalStep
        fields = [
            "id", "request", "revision_number", "group", "authority", "quorum", "status", "content_hash",
            "opened_at", "decided_at", "votes", "team_use",
        ]  # fmt: skip


class RequestSerializer(serializers.ModelSerializer[CapacityRequest]):
    team: serializers.SlugRelatedField[Any] = serializers.SlugRelatedField(
        slug_field="slug", read_only=True
    )
    requester = serializers.EmailField(source="requester.email", read_only=True)
    current = RevisionSerializer(read_only=True)

    class Meta:
        model = CapacityRequest
        fields = [
            "id", "reference", "number", "team", "requester", "title", "kind", "status", "status_since", "version",
            "revision_number", "created_at", "current",
        ]  # fmt: skip


class RequestDetailSerializer(RequestSerializer):
    """With the steps of the current revision, and what the caller may do now."""

    steps = serializers.SerializerMethodField()
    actions = serializers.SerializerMethodField()
    team_use = serializers.SerializerMethodField()
    review_action = serializers.SerializerMethodField()

    class Meta(RequestSerializer.Meta):
        fields = [*RequestSerializer.Meta.fields, "steps", "actions", "team_use", "review_action"]

    @extend_schema_field(StepSerializer(many=True))
    def get_steps(self, request: CapacityRequest) -> Any:
        steps = ApprovalStep.objects.filter(revision=request.current).select_related(
            "revision__team_use", "revision__plan"
        )
        steps = steps.prefetch_related("votes__voter", "votes__principal")
        return StepSerializer(steps, many=True).data

    @extend_schema_field(serializers.IntegerField(allow_null=True))
    def get_review_action(self, request: CapacityRequest) -> int | None:
        """The decision of a capacity review from which it was filed."""
        action = action_behind(request=request)
        return None if action is None else action.pk

    @extend_schema_field(UseSerializer(allow_null=True))
    def get_team_use(self, request: CapacityRequest) -> Any:
        """Of a draft: as it would be measured now; else as it was at submission."""
        use = use_of(request, policy_in_force(), today())
        return None if use is None else UseSerializer(use).data

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_actions(self, request: CapacityRequest) -> list[str]:
        user = self.context["request"].user
        return [name for name in OF_PEOPLE if policies.can(user, name, request)]


class TermsInput(serializers.Serializer[Any]):
    """Terms of a request. What a kind does not ask for must be left out."""

    need_by = serializers.DateField(required=False)
    start = serializers.DateField(required=False, allow_null=True)
    duration_days = serializers.IntegerField(required=False, allow_null=True)
    justification = serializers.CharField(required=False, allow_blank=True)
    data_residence = serializers.CharField(required=False)
    interruptible = serializers.BooleanField(required=False)
    checkpoint_seconds = serializers.IntegerField(required=False, allow_null=True)
    latency_class = serializers.CharField(required=False, allow_blank=True)
    accuracy_loss_limit = serializers.FloatField(required=False, allow_null=True)
    region = serializers.CharField(required=False, allow_blank=True, max_length=60)


@extend_schema_field(
    {
        "type": "object",
        "description": "By kind of request, as the request of docs/estimate-schema.md; loads may be arrays.",
        "properties": load_schemas(),
        "additionalProperties": True,
    }
)
class WorkloadField(StrictJSONField):
    """Values by name."""


class CreateInput(TermsInput):
    team = serializers.SlugField()
    kind = serializers.ChoiceField(choices=Kind.choices)
    title = serializers.CharField()
    workload = WorkloadField()


class EditInput(TermsInput):
    version = serializers.IntegerField(required=False)
    title = serializers.CharField(required=False)
    workload = WorkloadField(required=False)


class StepInput(serializers.Serializer[Any]):
    """Version that was read (or the header If-Match) and, where asked for, a reason."""

    version = serializers.IntegerField(required=False)
    reason = serializers.CharField(required=False, allow_blank=True, default="")
    use_reason = serializers.CharField(
        required=False, allow_blank=True, default="",
        help_text="To submit: why what the team has does not do, where it uses little of it.",
    )  # fmt: skip


class ChoosePlanInput(serializers.Serializer[Any]):
    study = serializers.IntegerField()
    plan_key = serializers.CharField()
    version = serializers.IntegerField(required=False)


class FulfilInput(serializers.Serializer[Any]):
    accepted = serializers.IntegerField()
    reason = serializers.CharField(required=False, allow_blank=True, default="")


class DecideInput(serializers.Serializer[Any]):
    decision = serializers.ChoiceField(choices=Decision.choices)
    seen_hash = serializers.CharField()
    reason = serializers.CharField(required=False, allow_blank=True, default="")
    cap_amount = serializers.DecimalField(18, 3, required=False, allow_null=True)
    cap_currency = serializers.ChoiceField(choices=CURRENCY_CHOICES, required=False)
    order_by = serializers.DateField(required=False, allow_null=True, default=None)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        amount, currency = attrs.pop("cap_amount", None), attrs.pop("cap_currency", "")
        if amount is not None and not currency:
            raise InputError("cap_currency", msg("Name the currency of the amount"))
        attrs["cap"] = None if amount is None else Money(amount, currency)
        return attrs


class DelegationSerializer(serializers.ModelSerializer[Delegation]):
    principal = serializers.EmailField(source="principal.email", read_only=True)
    delegate = serializers.EmailField(source="delegate.email", read_only=True)

    class Meta:
        model = Delegation
        fields = ["id", "principal", "delegate", "first_day", "last_day", "reason", "revoked_at"]


class DelegateInput(serializers.Serializer[Any]):
    delegate = serializers.EmailField()
    first_day = serializers.DateField()
    last_day = serializers.DateField()
    reason = serializers.CharField(required=False, allow_blank=True, default="")


class WaitingSerializer(serializers.Serializer[Any]):
    """One thing that waits; `decision` is to agree or refuse, as a second person."""

    title = serializers.CharField()
    url = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    since = serializers.DateTimeField()
    decision = serializers.BooleanField()
    state = serializers.CharField()
    note = serializers.CharField()


class RuleSerializer(serializers.ModelSerializer[ApprovalRule]):
    team: serializers.SlugRelatedField[Any] = serializers.SlugRelatedField(
        slug_field="slug", queryset=Team.objects.all(), required=False, allow_null=True
    )

    class Meta:
        model = ApprovalRule
        fields = ["group", "authority", "quorum", "above", "above_currency", "spend_kind", "team", "residence",
                  "over_budget_only", "low_use_only"]  # fmt: skip


class PolicySerializer(serializers.ModelSerializer[ApprovalPolicy]):
    """`standing`: adopted, waiting for a second administrator, or declined; `decided_by` agreed to it or dropped it."""

    rules = RuleSerializer(many=True, read_only=True)
    loaded_by = serializers.EmailField(source="loaded_by.email", default=None, read_only=True)
    decided_by = serializers.EmailField(source="decided_by.email", default=None, read_only=True)

    class Meta:
        model = ApprovalPolicy
        fields = ["id", "preset", "active", "two_person_budget", "allow_over_budget", "block_stale_study",
                  "reservation_days", "actual_tolerance", "order_tolerance", "over_approval", "rate_days",
                  "escalate_after_days", "use_first_below", "use_days", "use_needs_reason", "spread_terms",
                  "bind_ahead", "carry_over", "revalue_from", "loaded_by", "loaded_at", "note",
                  "standing", "decided_by", "decided_at", "rules"]  # fmt: skip


class LimitInput(serializers.Serializer[Any]):
    """`amount` null lifts the limit."""

    user = serializers.EmailField()
    amount = serializers.DecimalField(18, 3, allow_null=True)
    currency = serializers.ChoiceField(choices=CURRENCY_CHOICES)


class LimitSerializer(serializers.ModelSerializer[ApprovalLimit]):
    user = serializers.EmailField(source="user.email", read_only=True)

    class Meta:
        model = ApprovalLimit
        fields = ["user", "amount", "currency"]


class PresetInput(serializers.Serializer[Any]):
    preset = serializers.CharField()


class PolicyOptionsInput(serializers.Serializer[Any]):
    two_person_budget = serializers.BooleanField(required=False)
    allow_over_budget = serializers.BooleanField(required=False)
    block_stale_study = serializers.BooleanField(required=False)
    reservation_days = serializers.IntegerField(required=False)
    actual_tolerance = serializers.DecimalField(5, 4, required=False)
    order_tolerance = serializers.DecimalField(5, 4, required=False)
    over_approval = serializers.BooleanField(required=False)
    rate_days = serializers.IntegerField(required=False)
    escalate_after_days = serializers.IntegerField(required=False)
    use_first_below = serializers.DecimalField(4, 3, required=False, allow_null=True)
    use_days = serializers.IntegerField(required=False)
    use_needs_reason = serializers.BooleanField(required=False)
    spread_terms = serializers.BooleanField(required=False)
    bind_ahead = serializers.BooleanField(required=False)
    carry_over = serializers.ChoiceField(choices=CarryOver.choices, required=False)
    revalue_from = serializers.DecimalField(5, 4, required=False, allow_null=True)


class PolicyEditInput(serializers.Serializer[Any]):
    """`seen` is the id of the version that was read; options that are not given stay."""

    seen = serializers.IntegerField()
    note = serializers.CharField()
    rules = RuleSerializer(many=True)
    options = PolicyOptionsInput(required=False)


class BalanceSerializer(serializers.Serializer[Balance]):
    allotted = serializers.DecimalField(18, 3)
    reserved = serializers.DecimalField(18, 3)
    approved = serializers.DecimalField(18, 3)
    committed = serializers.DecimalField(18, 3)
    actual = serializers.DecimalField(18, 3)
    available = serializers.DecimalField(18, 3)
    after_requests = serializers.DecimalField(18, 3)


class BudgetSerializer(serializers.ModelSerializer[Budget]):
    team: serializers.SlugRelatedField[Any] = serializers.SlugRelatedField(
        slug_field="slug", read_only=True
    )
    quarter = serializers.CharField(source="label", read_only=True)
    balance = serializers.SerializerMethodField()

    class Meta:
        model = Budget
        fields = ["id", "team", "quarter", "kind", "currency", "closed_at", "balance"]

    @extend_schema_field(BalanceSerializer)
    def get_balance(self, budget: Budget) -> Any:
        return BalanceSerializer(self.context["balances"][budget.pk]).data


class EntrySerializer(serializers.ModelSerializer[LedgerEntry]):
    posted_by = serializers.EmailField(source="posted_by.email", read_only=True, default=None)

    class Meta:
        model = LedgerEntry
        fields = [
            "id", "kind", "bucket", "amount", "source", "revision", "request", "original_amount",
            "original_currency", "rate", "rate_date", "reverses", "posted_by", "posted_at", "reason",
        ]  # fmt: skip


class ChangeSerializer(serializers.ModelSerializer[BudgetChange]):
    review_action = serializers.IntegerField(
        source="review_action.pk", default=None, allow_null=True, read_only=True
    )

    class Meta:
        model = BudgetChange
        fields = [
            "id",
            "budget",
            "giver",
            "amount",
            "reason",
            "status",
            "version",
            "proposed_at",
            "decided_at",
            "review_action",
        ]


class OpenBudgetInput(serializers.Serializer[Any]):
    team = serializers.SlugField()
    quarter = serializers.CharField()
    kind = serializers.ChoiceField(choices=SpendKind.choices)
    currency = serializers.ChoiceField(choices=CURRENCY_CHOICES)


class AllotInput(serializers.Serializer[Any]):
    amount = serializers.DecimalField(18, 3)
    reason = serializers.CharField()


class TransferInput(AllotInput):
    receiver = serializers.IntegerField()


class CloseInput(serializers.Serializer[Any]):
    carry_unused = serializers.BooleanField(required=False, default=False)


class ActualInput(serializers.Serializer[Any]):
    amount = serializers.DecimalField(18, 6)
    currency = serializers.ChoiceField(choices=CURRENCY_CHOICES)
    document = serializers.CharField(max_length=80)
    revision = serializers.IntegerField(required=False, default=0)


class ReasonInput(serializers.Serializer[Any]):
    reason = serializers.CharField()
