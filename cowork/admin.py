"""The admin of the work between tasks."""

from django.contrib import admin
from rest_framework_api_key.models import APIKey

# A key of the library's own lets nobody in here: credentials do, and they are issued by actions.
admin.site.unregister(APIKey)
