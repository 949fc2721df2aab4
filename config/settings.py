"""Settings, read top to bottom. Behaviour differs by environment variable (see .env.example), never by another file."""

import sys
from pathlib import Path
from typing import Any

import environ
import structlog
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import gettext_lazy as _

from config.openapi import ENUM_NAMES

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()
if (BASE_DIR / ".env").is_file():
    environ.Env.read_env(BASE_DIR / ".env")

DEBUG = env.bool("DEBUG", default=False)
# EMBEDDED is the one-command product on one machine: SQLite and a private Redis, plain HTTP on localhost.
# script/server sets it; production leaves it unset.
EMBEDDED = env.bool("EMBEDDED", default=False)
TESTING = "pytest" in sys.modules
DATA_DIR = Path(env.str("DATA_DIR", default=str(BASE_DIR / "data"))).resolve()

# Secrets come from the environment only. Embedded mode gets a random one from script/server, kept in DATA_DIR.
DEVELOPMENT_SECRETS = {"", "change-me", "insecure", "secret"}
SECRET_KEY = env.str("SECRET_KEY", default="")
if not SECRET_KEY and (TESTING or EMBEDDED or DEBUG):
    from core.secrets import local_secret

    SECRET_KEY = local_secret(DATA_DIR)
# `check`-like commands that touch no data may run without a secret; serving may not.
COMMANDS_WITHOUT_SECRET = {
    "check", "makemigrations", "makemessages", "compilemessages", "collectstatic", "spectacular",
    "estimate", "score_estimators", "read_evidence", "help", "diffsettings",
}  # fmt: skip
if (
    SECRET_KEY in DEVELOPMENT_SECRETS
    or SECRET_KEY.startswith("django-insecure-")
    or (not DEBUG and (len(SECRET_KEY) < 32 or len(set(SECRET_KEY)) < 5))
):
    if (
        len(sys.argv) > 1
        and Path(sys.argv[0]).name == "manage.py"
        and sys.argv[1] in COMMANDS_WITHOUT_SECRET
    ):
        from core.secrets import throwaway_secret

        SECRET_KEY = throwaway_secret()
    else:
        raise ImproperlyConfigured(
            "SECRET_KEY is missing, a known default, shorter than 32 characters or of fewer than 5 different ones. "
            "Set it in the environment: "
            "python -c 'import secrets; print(secrets.token_urlsafe(50))'"
        )

ALLOWED_HOSTS = env.list(
    "ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"] if EMBEDDED or DEBUG else []
)
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])
SITE_URL = env.str(
    "SITE_URL", default="http://localhost:8000"
)  # address written into mails and QR codes

INSTALLED_APPS = [
    "core",
    "catalog",
    "planning",
    "procurement",
    "config.support.SupportConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "django.forms",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "rest_framework",
    "rest_framework.authtoken",
    "drf_spectacular",
    "django_filters",
    "django_htmx",
    "template_partials",
    "django_structlog",
    "django_celery_beat",
    "csp",
]

MIDDLEWARE = [
    "core.health.HealthMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "core.middleware.PrivateMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "core.middleware.PreferencesMiddleware",
    "core.sign_in.SignInMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "django_structlog.middlewares.RequestMiddleware",
    "core.middleware.AuditContextMiddleware",
    "core.middleware.DomainErrorMiddleware",
    "core.refused.RefusedMiddleware",
    "core.once.OnceMiddleware",
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "core.context_processors.shell",
            ],
            "builtins": [
                "core.templatetags.ui",
                "core.templatetags.parts",
                "catalog.templatetags.names",
            ],
        },
    }
]
FORM_RENDERER = "core.forms.ProjectFormRenderer"

# --- Data -----------------------------------------------------------------------------------------------------------
if env.str("DATABASE_URL", default=""):
    DATABASES = {"default": env.db("DATABASE_URL")}
else:
    DATABASES = {
        "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": DATA_DIR / "headroom.sqlite3"}
    }
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    # WAL lets readers go on while one writes; IMMEDIATE takes the write lock at the start of a transaction, so that a
    # read followed by a write cannot fail half-way with "database is locked".
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;",
    }
    # Kept open: the last one that closes takes the log and its index away, and on a full disk nobody could make them
    # again to read.
    DATABASES["default"]["CONN_MAX_AGE"] = None
else:
    DATABASES["default"].setdefault("CONN_MAX_AGE", 60)
    DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = env.str("REDIS_URL", default=f"unix://{DATA_DIR}/redis.sock")
# Set while an installation is prepared before its broker starts: tasks wait for the schedule and the sweeper.
BROKER_LATER = env.bool("BROKER_LATER", default=False)
CACHES = {
    "default": {
        "BACKEND": "core.cache.SteadyRedisCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": "hr",
        # A Redis that hangs counts as away: a page does not wait for it longer than this. [s]
        "OPTIONS": {"socket_connect_timeout": 2, "socket_timeout": 2},
    }
}
CELERY_BROKER_URL = (
    REDIS_URL.replace("unix://", "redis+socket://")
    if REDIS_URL.startswith("unix://")
    else REDIS_URL
)
CELERY_RESULT_BACKEND = None  # the Job row holds state and result
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_TIME_LIMIT = 15 * 60
CELERY_TASK_SOFT_TIME_LIMIT = 14 * 60
# Above the hard time limit, or Redis hands a running task out a second time.
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 30 * 60,
    # A page that queues work does not hang on a broker that does not answer; the worker's own reads wait 1 s at most.
    "socket_connect_timeout": 2,
    "socket_timeout": 5,
    "max_retries": 0,
    "global_keyprefix": env.str("CELERY_PREFIX", default=""),
}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_MAX_TASKS_PER_CHILD = 200
CELERY_WORKER_MAX_MEMORY_PER_CHILD = (
    1_500_000  # KiB: a child that grew past this is replaced after its task
)
# The schedule lives in the database: what config/celery.py lists is put there when beat starts, what people schedule
# stays.
CELERY_BEAT_SCHEDULER = "config.schedule:ProductScheduler"
CELERY_RESULT_EXPIRES = None  # no results, so nothing to clean up
CELERY_TIMEZONE = "UTC"

# --- People ---------------------------------------------------------------------------------------------------------
AUTH_USER_MODEL = "core.User"
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 10},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "home"
ACCOUNT_ADAPTER = "core.accounts.AccountAdapter"
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "none"  # accounts are made by an administrator; see core.accounts
ACCOUNT_PREVENT_ENUMERATION = True
ACCOUNT_SESSION_REMEMBER = None
ACCOUNT_LOGOUT_ON_GET = False
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
ACCOUNT_RATE_LIMITS = {"login_failed": "10/m/ip,5/5m/key"}

# --- Languages and time ---------------------------------------------------------------------------------------------
LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English")), ("zh-hans", _("Simplified Chinese"))]
LOCALE_PATHS = [BASE_DIR / "locale"]
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"  # stored; shown in the organisation's or the user's zone by PreferencesMiddleware
USE_THOUSAND_SEPARATOR = True
FORMAT_MODULE_PATH = ["config.formats"]

# --- Files ----------------------------------------------------------------------------------------------------------
STATIC_URL = "/static/"
STATIC_ROOT = Path(env.str("STATIC_ROOT", default=str(BASE_DIR / "staticfiles")))
STATICFILES_DIRS = [BASE_DIR / "static"]
MEDIA_ROOT = DATA_DIR / "files"  # private: served only by views after a permission check
STORAGES = {
    "default": {"BACKEND": "core.storage.WholeFileStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG or TESTING
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}
# How long the page of a study asked for just now waits for something to show, in seconds.
FIRST_PLANS_WAIT = env.float("FIRST_PLANS_WAIT", default=0.6)
MAX_UPLOAD_BYTES = env.int("MAX_UPLOAD_BYTES", default=400 * 1024 * 1024)
DATA_UPLOAD_MAX_MEMORY_SIZE = 12 * 1024 * 1024
FILE_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024

# --- Mail -----------------------------------------------------------------------------------------------------------
if env.str("EMAIL_URL", default=""):
    vars().update(env.email_url("EMAIL_URL"))
else:
    # Without a mail server, mails are written to files, so that nothing is lost and a person can read them.
    EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    EMAIL_FILE_PATH = str(DATA_DIR / "mail")
DEFAULT_FROM_EMAIL = env.str("DEFAULT_FROM_EMAIL", default="Headroom <headroom@localhost>")
EMAIL_TIMEOUT = 20

# --- Security -------------------------------------------------------------------------------------------------------
HTTPS = not (DEBUG or EMBEDDED or TESTING)
SECURE_SSL_REDIRECT = env.bool("SECURE_SSL_REDIRECT", default=HTTPS)
SECURE_PROXY_SSL_HEADER = (
    ("HTTP_X_FORWARDED_PROTO", "https") if env.bool("BEHIND_PROXY", default=False) else None
)
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS
SECURE_HSTS_PRELOAD = HTTPS
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SESSION_COOKIE_HTTPONLY = True
CSRF_COOKIE_HTTPONLY = (
    False  # htmx reads the token from a meta tag; the cookie itself stays same-site
)
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
CSRF_FAILURE_VIEW = "core.error_pages.csrf_failure"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
        "manifest-src": [SELF],
    }
}

# W047: SQLite cannot build the one constraint with nulls not distinct; there the rows' one writer replaces by key.
SILENCED_SYSTEM_CHECKS = ["models.W047"]

# --- API ------------------------------------------------------------------------------------------------------------
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "rest_framework.authentication.SessionAuthentication",
        "rest_framework.authentication.TokenAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_PAGINATION_CLASS": "core.drf.Pagination",
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_PARSER_CLASSES": [
        "core.drf.StrictJSONParser",
        "rest_framework.parsers.MultiPartParser",
    ],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "EXCEPTION_HANDLER": "core.drf.exception_handler",
    "COERCE_DECIMAL_TO_STRING": True,
    # Limits by address count the one that the proxy saw, never what a caller writes into X-Forwarded-For.
    "NUM_PROXIES": 1 if env.bool("BEHIND_PROXY", default=False) else 0,
    "DEFAULT_THROTTLE_CLASSES": ["rest_framework.throttling.UserRateThrottle"],
    "DEFAULT_THROTTLE_RATES": {"user": env.str("API_RATE", default="1200/min")},
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Headroom API",
    "VERSION": "1",
    "DESCRIPTION": "Plan, buy and prove AI compute. Amounts are decimal strings with an ISO 4217 currency.",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.IsAuthenticated"],
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "ENUM_NAME_OVERRIDES": ENUM_NAMES,
}

# --- Logs -----------------------------------------------------------------------------------------------------------
LOG_JSON = env.bool("LOG_JSON", default=not DEBUG)
_shared: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "structured": {
            "()": structlog.stdlib.ProcessorFormatter,
            "foreign_pre_chain": _shared,
            "processors": [
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                structlog.processors.JSONRenderer(ensure_ascii=False)
                if LOG_JSON
                else structlog.dev.ConsoleRenderer(),
            ],
        }
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "structured"}},
    "root": {"handlers": ["stderr"], "level": env.str("LOG_LEVEL", default="INFO")},
    "loggers": {
        "django.server": {"level": "WARNING"},
        "fontTools": {"level": "ERROR"},
        "weasyprint": {"level": "ERROR"},
    },
}
structlog.configure(
    processors=[
        *_shared,
        structlog.processors.StackInfoRenderer(),
        structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
    ],
    logger_factory=structlog.stdlib.LoggerFactory(),
    cache_logger_on_first_use=True,
)
DJANGO_STRUCTLOG_CELERY_ENABLED = True
DJANGO_STRUCTLOG_USER_ID_FIELD = "pk"
