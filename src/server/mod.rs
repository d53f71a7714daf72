//! HTTP: webhooks, API, pages.
