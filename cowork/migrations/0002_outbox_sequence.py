"""The numbers of outbox entries on PostgreSQL; SQLite has one writer, who counts on."""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps


def make(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("CREATE SEQUENCE IF NOT EXISTS cowork_outbox_sequence")


def drop(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP SEQUENCE IF EXISTS cowork_outbox_sequence")


class Migration(migrations.Migration):
    dependencies = [("cowork", "0001_initial")]
    operations = [migrations.RunPython(make, drop)]
