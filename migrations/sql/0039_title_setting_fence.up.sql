-- Commits of requests share this table, and writers of circulation settings lock it. It has no rows:
-- a setting that does not exist has no row to lock either, and VACUUM has nothing to do here.
--
-- Commits of earlier builds share circulation_settings itself, which its writers lock as ever.
CREATE TABLE title_setting_fence ();

CREATE FUNCTION fence_title_setting() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    LOCK TABLE title_setting_fence IN EXCLUSIVE MODE;
    RETURN NULL;
END
$$;
CREATE TRIGGER circulation_settings_fence BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON circulation_settings
    FOR EACH STATEMENT EXECUTE FUNCTION fence_title_setting();
