-- Builds that share the fence must not serve the tenant any more.
DROP TRIGGER circulation_settings_fence ON circulation_settings;
DROP FUNCTION fence_title_setting();
DROP TABLE title_setting_fence;
