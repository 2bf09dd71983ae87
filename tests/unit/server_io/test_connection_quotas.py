from penstock.server.connection_quotas import ConnectionQuotas


def test_limits_per_address_and_in_all() -> None:
    quotas = ConnectionQuotas(connections_max=4, per_ip_max=2, per_ip_overrides={"10.0.0.2": 3, "10.0.0.3": 0})
    assert [quotas.admit("10.0.0.1") for _ in range(2)] == [None, None]
    assert quotas.admit("10.0.0.1") == "max.connections.per.ip=2 is reached for 10.0.0.1"
    assert quotas.admit("10.0.0.3") == "max.connections.per.ip=0 is reached for 10.0.0.3"
    assert [quotas.admit("10.0.0.2") for _ in range(2)] == [None, None]
    assert quotas.admit("10.0.0.2") == "max.connections=4 is reached"
    quotas.forget("10.0.0.1")
    assert quotas.admit("10.0.0.2") is None
    assert quotas.total == 4
