"""The demo organisation's last weeks, lived through by the product's own services.

Only `manage.py load_demo_history` imports it.
"""
